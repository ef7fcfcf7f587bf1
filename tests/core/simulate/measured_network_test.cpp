// SPDX-License-Identifier: Apache-2.0
#include "simulate/measured_network.hpp"

#include "base/failure.hpp"
#include "temporary_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace regatta;
using nlohmann::json;

namespace {

// Sends of these sizes over a link with a latency of 50 us, at 1 Gbit/s, where a message costs 10 us on one host. Between
// the hosts it takes 24 us and 0.6 ns/B of processors.
json document(const std::vector<double>& sizes) {
  json d = {{"schema", "regatta.comm/1"}, {"context", {{"hosts", {{{"name", "a"}}, {{"name", "b"}}}}}}};
  d["results"] = json::array();
  for (const double bytes : sizes)
    d["results"].push_back({{"op", "send"},
                            {"ranks", 2},
                            {"transport", "tcp"},
                            {"bytes", bytes},
                            {"seconds", {{"median", 1e-9 * (60'000 + 8 * bytes)}}},
                            {"cpu_seconds", 1e-9 * (24'000 + 0.6 * bytes)}});
  return d;
}

const message_costs costs = [] {
  message_costs c;
  c.latency_ns = 4000;
  c.overhead_ns = 3000;
  return c;
}();
const std::vector<std::string> transports = {"shm", "tcp"};

struct stored {
  explicit stored(const json& d) { std::ofstream(file()) << d; }
  std::string file() const { return (folder.path / "comm.json").string(); }
  test::temporary_folder folder;
};

// Returns the text of the failure.
std::string refusal(const json& d) {
  const stored s(d);
  try {
    read_measured_sends(s.file(), transports);
  } catch (const failure& f) {
    return f.what();
  }
  return "";
}

} // namespace

TEST_CASE("the rate of large messages, and what small ones take beyond their costs on one host") {
  json d = document({8, 1024, 2e6, 4e6});
  d["results"].push_back(d["results"][0]);
  d["results"].back()["bytes"] = 65536; // faster than the link's rate: a burst
  d["results"].back()["cpu_seconds"] = 1e-9 * (24'000 + 0.6 * 65536);
  d["results"].push_back({{"op", "allreduce"}, {"ranks", 2}, {"transport", "tcp"}, {"bytes", 8}});
  const stored s(d);
  const measured_sends sends = read_measured_sends(s.file(), transports);
  CHECK(sends.work.overhead_ns == doctest::Approx(12'000));
  CHECK(sends.work.overhead_ns_per_byte == doctest::Approx(0.3));
  const machine_file::network n = network_of(sends, costs);
  CHECK(8 * n.bytes_per_ns == doctest::Approx(1));
  CHECK(n.latency_ns == doctest::Approx(50'000));
  REQUIRE(n.residual);
  CHECK(*n.residual == doctest::Approx(0).epsilon(1e-6));
}

TEST_CASE("a network that was measured is written and read back") {
  const stored s(document({8, 4e6}));
  machine_file m;
  m.rates = {{32, 10}};
  m.between = network_of(read_measured_sends(s.file(), transports), costs);
  const std::string text = machine_text(m);
  CHECK(text.find("assumption") == std::string::npos);
  const machine_file again = parse_machine("m.toml", text);
  CHECK(again.between.bytes_per_ns == doctest::Approx(0.125));
  CHECK(again.between.latency_ns == 50'000);
  CHECK(again.between.residual);
}

TEST_CASE("a result that does not show a network between two hosts is refused") {
  json one = document({8, 4e6});
  one["context"]["hosts"].erase(1);
  CHECK(refusal(one).find("expected messages between two hosts, got 1 host") != std::string::npos);
  CHECK(refusal(document({8})).find("got 1 and 0") != std::string::npos);
  CHECK(refusal(document({2e6, 4e6})).find("got 0 and 2") != std::string::npos);
  json other = document({8, 4e6});
  for (json& row : other["results"]) row["transport"] = "ucx";
  CHECK(refusal(other).find("--transport ucx") != std::string::npos);
  json odd = document({8, 2e6, 3e6, 4e6, 6e6});
  for (const std::size_t i : {1, 3}) odd["results"][i]["seconds"]["median"] = 1.0;
  for (const std::size_t i : {2, 4}) odd["results"][i]["seconds"]["median"] = 0.001;
  CHECK(refusal(odd).find("residual") != std::string::npos);
  CHECK(refusal({{"schema", "regatta.result/1"}}).find("regatta.comm/1") != std::string::npos);
}

// SPDX-License-Identifier: Apache-2.0
//
// The machine files that `regatta calibrate` writes.
#include "simulated.hpp"

#include <map>
#include <string>
#include <thread>

using namespace regatta::test;

namespace {

// Returns the sum of the times, such as 20us, after each occurrence of `key`, in seconds.
double seconds_of_all(const std::string& text, const std::string& key) {
  const std::map<std::string, double> units{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  double sum = 0;
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    std::size_t digits = 0;
    const std::string time = text.substr(at + key.size(), text.find('"', at + key.size()) - at - key.size());
    const double number = std::stod(time, &digits);
    sum += number * units.at(time.substr(digits));
  }
  return sum;
}

} // namespace

TEST_CASE("a calibration is what a simulation of one worker gives back, and a bad fit writes no file") {
  const experiment_folder s;
  json comm = {{"schema", "regatta.comm/1"}, {"context", {{"hosts", {{{"name", "a"}}, {{"name", "b"}}}}}}};
  for (const double bytes : {8.0, 1e6, 2e6, 4e6})
    comm["results"].push_back({{"op", "send"},
                               {"ranks", 2},
                               {"transport", "tcp"},
                               {"bytes", bytes},
                               {"seconds", {{"median", 200e-6 + 8e-9 * bytes}}},
                               {"cpu_seconds", 80e-6 + 2e-9 * bytes}});
  std::ofstream(s.path / "comm.json") << comm;
  const std::filesystem::path written = s.path / "own.toml";
  outcome o;
  for (int attempt = 0; attempt < 5 && !exists(written); ++attempt) {
    o = program(s, "calibrate x.toml -o own.toml --transport tcp --comm comm.json --progress never");
    CHECK(exists(written) == (o.code == 0));
    if (o.code != 0) CHECK(o.err.find("repeat it on an idle machine") != std::string::npos); // a fit, or the steps vary
  }
  INFO(o.err);
  REQUIRE(o.code == 0);
  std::string text = read(written);
  CHECK(text.find("[transport.tcp.between_hosts]\noverhead = ") != std::string::npos);
  CHECK(text.find("bandwidth = \"1Gbit/s\"") != std::string::npos);
  // Two workers with a core each have exchanged gradients in a ring, and with a server.
  if (std::thread::hardware_concurrency() >= 2) {
    for (const char* key : {"overhead_in_training = ", "overhead_per_byte_in_training = ", "in_training_residual = "})
      CHECK(text.find(key) != std::string::npos);
    CHECK(o.out.find("% the sender's), an update") != std::string::npos);
  }
  // Without a variation, each step takes the sum of the tensors' times.
  const std::size_t variation = text.find("variation = ");
  REQUIRE(variation != std::string::npos);
  text.replace(variation, text.find('\n', variation) - variation, "variation = 0");
  std::ofstream(s.path / "same.toml") << text;
  const double backward = seconds_of_all(text, "backward = \"");
  REQUIRE(backward > 0);
  const json d = simulated(s, "--machine same.toml --out a");
  CHECK(d.at("results").at(0).at("time").at("backward") == doctest::Approx(backward));
  CHECK(d.at("results").at(1).at("workers") == 2);
  CHECK(d.at("results").at(1).at("status") == "ok");
}

TEST_CASE("calibrate refuses what it cannot use before it measures anything") {
  const experiment_folder s;
  std::ofstream(s.path / "none.toml") << "[model]\nplugin = \"no_such_model\"\n";
  const outcome comm = program(s, "calibrate none.toml -o m2.toml --comm m.toml");
  CHECK(comm.code == 2);
  CHECK(comm.err.find("m.toml") != std::string::npos);
  CHECK(comm.err.find("no_such_model") == std::string::npos);
  const outcome out = program(s, "calibrate none.toml -o nowhere/m2.toml");
  CHECK(out.code == 2);
  CHECK(out.err.find("-o nowhere/m2.toml: nowhere: No such file or directory") != std::string::npos);
}

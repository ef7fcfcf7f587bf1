// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "cli/run_traces.hpp"
#include "temporary_folder.hpp"
#include "timeline/perfetto.hpp"
#include "trace/recorder.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

constexpr std::uint64_t ahead = 5'000'000'000'000; // of the second host's clock, ns

// A step of a rank; its clock is ahead by so many ns.
json result_of(std::uint32_t rank, const std::string& host, std::uint64_t begin, std::uint64_t end,
               std::uint64_t its_clock) {
  trace_recorder r(1);
  r.record(true);
  r.span(event_origin::compute, "step", "step", its_clock + begin, its_clock + end, "step", 3);
  return {{"host", host}, {"trace", r.take(rank, "worker " + std::to_string(rank))}};
}

const trace_event& step_of(const rank_trace& t) {
  return *std::ranges::find_if(t.events, [&](const trace_event& e) { return t.text(e.category) == "step"; });
}

} // namespace

TEST_CASE("the trace of ranks on two hosts is on one clock, and names the hosts") {
  const test::temporary_folder folder;
  run_traces traces(folder.path);
  traces.begin("run");
  std::vector<json> ranks{result_of(0, "n0", 1000, 9000, 0), result_of(1, "n1", 2000, 8000, ahead)};
  const std::vector<timed_host> hosts{{"n0", {{{0, {0, 10}}}}}, {"n1", {{{ahead, {static_cast<double>(ahead), 10}}}}}};
  CHECK(traces.take(ranks, hosts).empty());
  CHECK_FALSE(ranks[0].contains("trace"));
  std::ifstream file(folder.path / "run.pftrace.gz", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::vector<rank_trace> read = read_perfetto_file(bytes);
  REQUIRE(read.size() == 2);
  CHECK(read[0].role == "worker 0, host n0");
  CHECK(read[1].role == "worker 1, host n1");
  CHECK(step_of(read[1]).begin - step_of(read[0]).begin == 1000);
  CHECK(step_of(read[0]).end - step_of(read[1]).end == 1000);
}

TEST_CASE("no trace is written if the clock of a host is unknown") {
  const test::temporary_folder folder;
  run_traces traces(folder.path);
  traces.begin("run");
  std::vector<json> ranks{result_of(0, "n0", 1000, 9000, 0), result_of(1, "n1", 2000, 8000, ahead)};
  const auto warnings = traces.take(ranks, {{"n0", {{{0, {0, 10}}}}}, {"n1", {}}});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("the offset of their clocks is unknown") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path / "run.pftrace.gz"));
}

// SPDX-License-Identifier: Apache-2.0
//
// The record of a rank as JSON, and its readings of memory, CPU time and steal time.
#include "base/failure.hpp"
#include "json.hpp"
#include "measure/rank_record.hpp"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::test;

TEST_CASE("a record comes back from JSON as it was") {
  rank_record r;
  r.rank = r.worker = 3;
  r.host = "here";
  r.role = "worker 3";
  for (std::int64_t n : {1, 20}) {
    step_time s;
    for (auto member : {&step_time::begin, &step_time::input, &step_time::forward, &step_time::backward,
                        &step_time::update, &step_time::blocked, &step_time::compute_end, &step_time::end})
      s.*member = n++;
    r.steps.push_back(s);
  }
  r.loss_sums = {20, 10};
  r.loss_counts = {10, 10};
  r.server = 1;
  r.communication_ns = 11;
  r.server_update_ns = 12;
  r.drain_ns = 13;
  r.bytes_sent = std::uint64_t{1} << 40;
  r.bytes_received = 15;
  r.memory_peak_bytes = 16;
  r.cpu_seconds = 1.5;
  r.steal = 0.25;
  r.gpu.emplace();
  r.gpu->name = "NVIDIA H200";
  r.gpu->memory_peak_bytes = 1e11;
  r.gpu->power_watts = 612.5;
  r.layout = "plain";
  r.isa = "avx512_core";
  r.kernels = "conv1: jit\n";
  r.metric = "top1";
  r.metric_value = 0.5;
  r.evaluation_ns = 7;
  r.warm_up_ns = {3e6, 2e6};
  r.touched_rows = {40, 0};
  r.warnings = {"one", "two"};
  const nlohmann::json j = to_json(r);
  CHECK(to_json(record_from_json(parsed(text_of(j)))) == j);
  const rank_record back = record_from_json(j);
  CHECK(back.steps[1].compute_end == r.steps[1].compute_end);
  CHECK(back.metric_value == 0.5);
  CHECK(back.evaluation_ns == 7);
  CHECK(back.warm_up_ns == r.warm_up_ns);
  CHECK(back.touched_rows == r.touched_rows);
  CHECK(j["gpu"]["memory_peak_bytes"] == 100'000'000'000);
  CHECK(back.gpu->power_watts == 612.5);
  CHECK_FALSE(back.gpu->utilisation);

  r.loss_sums[0] = std::numeric_limits<double>::quiet_NaN(); // null in JSON
  CHECK(std::isnan(record_from_json(parsed(text_of(to_json(r)))).loss_sums[0]));
}

TEST_CASE("a record with a member that is missing or of another type is refused, and names it") {
  const nlohmann::json good = to_json(rank_record{});
  const auto refusal = [](const nlohmann::json& j) -> std::string {
    try {
      record_from_json(j);
    } catch (const regatta::failure& e) {
      return e.what();
    }
    return "none";
  };
  REQUIRE(refusal(good) == "none");
  CHECK(refusal(nlohmann::json::object()) == "\"rank\" is missing");
  for (const auto& [key, value] : good.items()) {
    CAPTURE(key);
    nlohmann::json j = good;
    j.erase(key);
    CHECK(refusal(j) == "\"" + key + "\" is missing");
    j[key] = "x";
    if (!value.is_string()) CHECK(refusal(j) != "none");
    j[key] = 5;
    const bool may_be_a_number = value.is_number() || key == "bound" || key == "numa_node" || key == "steal" ||
                                 key == "run_queue" || key == "metric_value";
    if (!may_be_a_number) CHECK(refusal(j) != "none");
  }
  // Numbers that do not fit are not cut.
  for (const nlohmann::json& value : {nlohmann::json(1.5), nlohmann::json(-1), nlohmann::json(1e30)}) {
    nlohmann::json j = good;
    j["samples"] = value;
    CHECK(refusal(j) == "\"samples\" has a value of the wrong type, number");
    j = good;
    j["steps"]["begin"] = {value};
    CHECK(refusal(j) != "none");
  }
}

TEST_CASE("readings of this process and machine are plausible") {
  CHECK(memory_peak_bytes() > 1 << 20);
  CHECK(process_cpu_seconds() > 0);
  CHECK(steal_between(cpu_ticks{100, 5}, cpu_ticks{200, 15}) == 0.1);
  CHECK_FALSE(steal_between(cpu_ticks{100, 5}, cpu_ticks{100, 5}));
  CHECK_FALSE(steal_between(std::nullopt, cpu_ticks{100, 5}));
}

// SPDX-License-Identifier: Apache-2.0
#include "report/result_checks.hpp"

#include "figures_fixture.hpp"

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::test;
using nlohmann::json;

TEST_CASE("result checks: the first loss agrees, every loss is finite, replicas agree") {
  case_config other = two_workers();
  other.swept = {{"cluster.workers", 2}, {"strategy.plugin", "sync_ps"}};
  CHECK(check_results({entry(2.302585), entry(2.302590, other)}).empty());
  CHECK(check_results({entry(2.302585), entry(2.31, other)}) ==
        std::vector<std::string>{"workers 2, strategy sync_ps: the loss of the first step is 2.31, "
                                 "but 2.302585 for workers 2, on the same samples"});
  other.seed = 2; // other samples: nothing to compare
  CHECK(check_results({entry(2.302585), entry(2.31, other)}).empty());
  CHECK(check_results(json::array({entry(std::numeric_limits<double>::quiet_NaN())})) ==
        std::vector<std::string>{"workers 2: the loss is not finite"});
  json apart = entry(2.3);
  apart["replicas_identical"] = false;
  CHECK(check_results(json::array({apart})) ==
        std::vector<std::string>{"workers 2: the workers ended with different weights"});
  json silent = entry(2.3);
  silent["loss"] = nullptr; // a model without a loss
  CHECK(check_results({silent, silent}).empty());
}

// A run that was evaluated after 10, 20 and 30 steps of 0.1 s.
run_figures evaluated(const std::vector<double>& metrics, const std::string& name = "top1") {
  run_figures f = run(180, shared);
  f.metric = name;
  f.metric_value = metrics.back();
  f.evaluation_seconds = 0.5;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    f.metric_curve.emplace_back(10 * (i + 1), metrics[i]);
    f.metric_seconds.emplace_back(static_cast<double>(i));
    f.metric_training_seconds.push_back(static_cast<double>(i + 1));
  }
  return f;
}

json with_target(double target, const std::vector<run_figures>& runs, const std::string& side = "auto") {
  case_config c = two_workers();
  c.measure.target = target;
  c.measure.target_is = side;
  std::vector<repeat_figures> repeats;
  for (const run_figures& f : runs) repeats.push_back({f, {}, {}, {}, {}});
  return parsed(text_of(case_entry(c, weak(), repeats)));
}

TEST_CASE("a target is asked of the metric only where there is one, and of every repeat") {
  CHECK_FALSE(missed_target(entry(2.3)));
  CHECK(missed_target(with_target(0.5, {run(180, shared)})) ==
        "workers 2: measure.target is 0.5, but nothing was evaluated");
  CHECK_FALSE(missed_target(with_target(0.5, {evaluated({0.1, 0.6})})));
  CHECK_FALSE(missed_target(with_target(0.5, {evaluated({0.6, 0.4})}))); // reached once
  CHECK(missed_target(with_target(0.7, {evaluated({0.1, 0.6}), evaluated({0.1, 0.8})})) ==
        "workers 2: 1 of 2 repeats reached measure.target, top1 at least 0.7; the final top1 is 0.7");
  CHECK_FALSE(missed_target(with_target(0.7, {evaluated({0.9, 0.6}, "perplexity")})));
  CHECK(missed_target(with_target(0.5, {evaluated({0.9, 0.6}, "perplexity")})) ==
        "workers 2: 0 of 1 repeats reached measure.target, perplexity at most 0.5; the final perplexity is 0.6");
  CHECK_FALSE(missed_target(with_target(0.7, {evaluated({0.9, 0.6})}, "at_most")));
  CHECK(missed_target(with_target(0.7, {evaluated({0.3, 0.6}, "loss")}, "at_least")).has_value());
}

TEST_CASE("steps and seconds to a target are those of its first evaluation; repeats without one took longer") {
  const json e = with_target(0.5, {evaluated({0.1, 0.6, 0.9}), evaluated({0.5, 0.4}), evaluated({0.2, 0.3, 0.5})});
  CHECK(e["target"] == json{{"metric", "top1"}, {"value", 0.5}, {"side", "at_least"}, {"reached", 3}});
  CHECK(e["repeats"][0]["case"]["steps_to_target"] == 20);
  CHECK(e["steps_to_target"]["n"] == 3);
  CHECK(e["steps_to_target"]["median"] == 20);
  CHECK(e["steps_to_target"]["low"] == 10);
  CHECK(e["steps_to_target"]["high"] == 30);
  CHECK(e["seconds_to_target"]["median"] == 2);
  CHECK(e["evaluation_seconds"] == 0.5);

  // Two of three reach it: the median is known, the upper bound is not.
  const json some = with_target(0.5, {evaluated({0.1, 0.6}), evaluated({0.1, 0.1}), evaluated({0.7})});
  CHECK(some["target"]["reached"] == 2);
  CHECK(some["seconds_to_target"]["n"] == 3);
  CHECK(some["seconds_to_target"]["median"] == 2);
  CHECK(some["seconds_to_target"]["low"] == 1);
  CHECK(some["seconds_to_target"]["high"].is_null());
  CHECK(some["seconds_to_target"]["max"].is_null());
  CHECK(some["repeats"][1]["case"]["seconds_to_target"].is_null());

  const json few = with_target(0.5, {evaluated({0.1, 0.6}), evaluated({0.1}), evaluated({0.1}), evaluated({0.7})});
  CHECK(few["seconds_to_target"]["median"].is_null()); // between a repeat that reached it and one that did not
  const json none = with_target(0.5, {evaluated({0.1})});
  CHECK(none["steps_to_target"].is_null());
  CHECK(none["seconds_to_target"].is_null());
  CHECK(none["target"]["reached"] == 0);
  for (const char* member : {"target", "steps_to_target", "seconds_to_target"}) {
    CHECK(entry(2.3)[member].is_null());
    CHECK(with_target(0, {evaluated({0.9})})[member].is_null());
  }
  CHECK(entry(2.3)["evaluation_seconds"].is_null());
}

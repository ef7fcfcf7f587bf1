// SPDX-License-Identifier: Apache-2.0
//
// How many repeats, and how long ones: the functions by numbers worked out by hand, and the decisions by records of
// runs that never ran.
#include "results/sampling.hpp"

#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "../compare/recorded.hpp"
#include "base/failure.hpp"
#include "measure/rank_record.hpp"
#include "results/inference.hpp"
#include "results/result_document.hpp"
#include "results/statistics.hpp"

using namespace regatta;
using doctest::Approx;
using nlohmann::json;

namespace {

experiment one_case(double precision, bool baseline) {
  case_config c;
  c.measure.precision = precision;
  c.measure.baseline = baseline;
  c.cluster.workers = baseline ? 2 : 1;
  experiment e;
  e.cases = {c};
  return e;
}

// Records of a campaign whose runs have steps of given lengths.
class runs {
public:
  explicit runs(double precision, bool baseline = false)
      : experiment_(one_case(precision, baseline)), records_(experiment_) {}

  // Adds the run of a repeat whose steps take `ms` milliseconds each, with 10 samples a step and worker.
  void add(std::uint64_t repeat, const std::vector<double>& ms, const std::string& role = "case") {
    finished_run r;
    r.role = role;
    r.repeat = repeat;
    r.round = role == "case" ? records_.last_run() + 1 : round_;
    if (role == "case") round_ = r.round;
    r.plugins = json::object();
    r.needs_baseline = experiment_.cases[0].measure.baseline && role == "case";
    rank_record rank;
    rank.worker = 0;
    std::int64_t now = 0;
    for (const double step : ms) {
      step_time t;
      t.begin = now;
      t.forward = static_cast<std::int64_t>(step * 1e6);
      now = t.end = t.compute_end = now + t.forward;
      rank.steps.push_back(t);
    }
    rank.region_end = now;
    rank.samples = 10 * ms.size();
    r.ranks = json::array({to_json(rank)});
    records_.add(run_record(experiment_, records_.last_run() + 1, r));
  }
  void add_rounds(const std::vector<double>& ms) {
    for (const double step : ms) add(repeats_++, std::vector<double>(20, step));
  }
  next_round next(const group_time& time = {0, 1, 1e9}) const { return records_.next({0}, time); }
  void keep(const next_round& next) {
    for (const json& record : next.records) records_.add(record);
  }
  json entry(const next_round& last) {
    result_document document(experiment_, records_);
    document.update(last.records.at(0));
    return document.entry(0);
  }

  experiment experiment_;
  campaign_records records_;

private:
  std::uint64_t repeats_ = 0, round_ = 0;
};

std::string ended(const next_round& n) {
  return n.records.empty() ? "" : n.records.at(0).at("ended").get<std::string>();
}

} // namespace

TEST_CASE("the half width is that of an interval of 95 %, so it takes six samples") {
  CHECK_FALSE(relative_half_width({1, 1, 1, 1, 1}));
  CHECK(*relative_half_width({98, 99, 100, 100, 101, 102}) == Approx(0.02));
  CHECK_FALSE(relative_half_width({-1, -1, -1, -1, -1, -1}));
}

TEST_CASE("the variance of the steps is that of their mean, with the correlation of neighbours") {
  CHECK(variance_of_steps(std::vector<double>(19, 1)) == 0);
  CHECK(variance_of_steps(std::vector<double>(100, 1)) == 0);
  std::vector<double> alternating, halves;
  for (int i = 0; i < 100; ++i) {
    alternating.push_back(i % 2 ? 0.9 : 1.1); // every batch of 10 has the same mean
    halves.push_back(i < 50 ? 0.9 : 1.1);     // batches differ by as much as the steps
  }
  CHECK(variance_of_steps(alternating) == Approx(0).epsilon(1e-12));
  const double d = std::log(1.1 / 0.9) / 2; // logs are the mean plus or minus d
  CHECK(variance_of_steps(halves) == Approx(d * d * 10 / 9 / 10));
}

TEST_CASE("a variance is split into that of the steps, at most all of it, and that between repeats") {
  const std::vector<double> ratios = {std::exp(-0.1), std::exp(0.1), std::exp(-0.1), std::exp(0.1)};
  const double all = 0.01 * 4 / 3;
  const auto v = split_variance(ratios, 0.004);
  REQUIRE(v);
  CHECK(v->steps == Approx(0.004));
  CHECK(v->repeats == Approx(all - 0.004));
  CHECK(split_variance(ratios, 1)->repeats == Approx(0).epsilon(1e-12));
  CHECK_FALSE(split_variance({1}, 0));
}

TEST_CASE("longer runs are chosen where the steps vary and starts are expensive, more repeats where runs vary") {
  const variance_parts steps{0, 0.01}, between{0.01, 0};
  CHECK(rounds_needed(steps, 0.02, 1) == 4 * rounds_needed(steps, 0.02, 4) - 1); // 151 and 38, both rounded up
  CHECK(rounds_needed(between, 0.02, 4) == rounds_needed(between, 0.02, 1));
  CHECK(rounds_needed({0, 0}, 0.02, 1) == fewest_rounds);
  CHECK(rounds_needed({9, 9}, 0.001, 1) == most_rounds);
  const round_cost cost{6, 1, 0.1};
  CHECK(best_length({steps}, 0.02, cost) == 32); // 6 rounds of 4.2 s; with 16: 10 of 2.6 s, with 64: 6 of 7.4 s
  CHECK(best_length({between}, 0.02, cost) == 1);
  CHECK(best_length({steps, between}, 0.02, cost) == 1); // longer runs do not help the second
  CHECK(best_length({steps}, 0.02, {6, 0, 1}) == 1);     // nothing is saved, and six rounds would be lost
}

TEST_CASE("repeats go on until the figure is as precise as asked, for six at least") {
  runs r(0.02);
  CHECK(*r.next().repeat == 0);
  r.add_rounds({10, 10.1, 9.9, 10, 10.1});
  CHECK(*r.next().repeat == 5);
  CHECK_FALSE(r.next().half_width);
  r.add_rounds({10.05});
  const next_round last = r.next();
  CHECK_FALSE(last.repeat);
  CHECK(ended(last) == "precise");
  CHECK(*last.half_width == Approx(0.01).epsilon(0.02));
  CHECK_FALSE(r.records_.complete(0));
  r.keep(last);
  CHECK(r.records_.complete(0));
  const json entry = r.entry(last);
  CHECK(entry.at("status") == "ok");
  CHECK(entry.at("sampling").at("ended") == "precise");
  CHECK(entry.at("sampling").at("half_width").get<double>() == Approx(*last.half_width));
  CHECK(entry.at("samples_per_second").at("n") == 6);
}

TEST_CASE("one noisy repeat does not count as a figure known well") {
  runs r(0.02);
  r.add_rounds({10, 10.1, 9.9, 10, 10.1, 15});
  CHECK(*r.next().repeat == 6);
  CHECK(*r.next().half_width > 0.1);
  r.add_rounds({10, 10.1, 9.95}); // with nine, the second and the eighth bound the interval
  CHECK(ended(r.next()) == "precise");
}

TEST_CASE("the budget ends the repeats before a round that it does not cover, and the result says so") {
  runs r(0.02);
  CHECK(*r.next({0, 0, 5}).repeat == 0); // the first round always runs
  r.add_rounds({10, 14});
  CHECK(*r.next({2, 1, 5}).repeat == 2);
  const next_round last = r.next({4.5, 1, 5});
  CHECK(ended(last) == "budget");
  r.keep(last);
  const json entry = r.entry(last);
  CHECK(entry.at("status") == "ok");
  CHECK(entry.at("sampling").at("half_width").is_null());
  CHECK(entry.at("warnings").dump().find("measure.budget of 10min was spent before the figure was known to 2 %") !=
        std::string::npos);
}

TEST_CASE("runs become longer if that is faster; earlier repeats no longer count, also after --resume") {
  runs r(0.02);
  std::mt19937 random(1);
  std::normal_distribution<double> noise(10, 3);
  const auto add = [&](std::uint64_t repeat) {
    std::vector<double> steps;
    for (int s = 0; s < 40; ++s) steps.push_back(std::max(1.0, noise(random)));
    r.add(repeat, steps);
  };
  for (std::uint64_t repeat = 0; repeat < 6; ++repeat) add(repeat);
  const group_time time{12, 2, 1e9};      // a round of 2 s, of which 0.4 are steps
  CHECK(r.next({12, 2, 14}).length == 1); // no time for six longer rounds
  const next_round longer = r.next(time);
  CHECK(longer.length > 1);
  CHECK(*longer.repeat == 0);
  CHECK(ended(longer).empty());
  r.keep(longer);
  CHECK(r.records_.of_case(0).repeats.empty());
  CHECK(*r.next(time).repeat == 0);
  CHECK(r.next(time).length == longer.length);
  add(0);
  CHECK(*r.next(time).repeat == 1);
  CHECK(r.records_.of_case(0).repeats.size() == 1);
  // A case with an evaluation keeps its steps: after another number of them the metric is another one.
  runs fixed(0.02);
  fixed.experiment_.cases[0].data.evaluation_path = "x";
  random.seed(1);
  for (std::uint64_t repeat = 0; repeat < 6; ++repeat) {
    std::vector<double> steps;
    for (int s = 0; s < 40; ++s) steps.push_back(std::max(1.0, noise(random)));
    fixed.add(repeat, steps);
  }
  CHECK(fixed.next(time).length == 1);
  CHECK(*fixed.next(time).repeat == 6);
}

TEST_CASE("with a baseline the figure is E, and a repeat counts when all runs of its round are there") {
  runs r(0.02, true);
  r.experiment_.cases[0].strategy.id = "none"; // no contention control
  for (std::uint64_t repeat = 0; repeat < 6; ++repeat) {
    const double drift = 10.0 + static_cast<double>(repeat); // of the machine: E stays the same
    r.add(repeat, std::vector<double>(20, drift));
    CHECK(*r.next().repeat == repeat);
    r.add(repeat, std::vector<double>(20, drift), "baseline");
    CHECK(*r.next().repeat == repeat);
    r.add(repeat, std::vector<double>(20, drift), "baseline");
  }
  CHECK(ended(r.next()) == "precise");
  CHECK(*r.next().half_width == Approx(0).epsilon(1e-9));
  CHECK(compared_figure(r.experiment_.cases[0], r.records_.of_case(0)) == std::vector<double>(6, 0.5));
}

TEST_CASE("the interval covers the true median though the repeats end when it happens to be narrow") {
  const auto truth = *median(recorded::samples_per_second);
  for (const double precision : {0.01, 0.02, 0.03}) {
    std::mt19937 random(7);
    const int campaigns = 1000;
    int covered = 0;
    for (int c = 0; c < campaigns; ++c) {
      std::vector<double> samples;
      do samples.push_back(recorded::samples_per_second[random() % recorded::samples_per_second.size()]);
      while (relative_half_width(samples).value_or(1) > precision && samples.size() < most_rounds);
      const auto i = median_interval(samples);
      covered += i->low <= truth && truth <= i->high;
    }
    CAPTURE(precision);
    CHECK(covered >= 915); // 935 or more in truth, less 2.5 standard deviations of a binomial count
  }
}

TEST_CASE("damaged records of the sampling are refused") {
  runs r(0.02);
  json record = sampling_record(r.experiment_, 0, 2, "");
  record["length"] = 0;
  CHECK_THROWS_AS(r.records_.add(record), failure);
  record.erase("length");
  CHECK_THROWS_AS(r.records_.add(record), failure);
}

TEST_CASE("without measure.precision the repeats are those of measure.repeats") {
  runs r(0);
  r.experiment_.cases[0].measure.repeats = 2;
  r.add_rounds({10, 20});
  CHECK_FALSE(r.next().repeat);
  CHECK(r.next().records.empty());
  CHECK(r.records_.complete(0));
}

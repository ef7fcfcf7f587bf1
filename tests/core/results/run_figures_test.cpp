// SPDX-License-Identifier: Apache-2.0
//
// Figures of runs made by hand, whose answers can be worked out on paper. Times in ms.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/failure.hpp"
#include "json.hpp"
#include "results/run_figures.hpp"
#include "results/statistics.hpp"

using namespace regatta;
using namespace regatta::test;
using doctest::Approx;

namespace {

constexpr std::int64_t ms = 1'000'000;

struct phases {
  int input, forward, backward, update, blocked, other;
};

// Steps one after the other: input, forward, backward, then blocked, update and whatever else.
rank_record worker(int number, std::int64_t begin, const std::vector<phases>& steps,
                   std::uint64_t samples_a_step = 10) {
  rank_record r;
  r.rank = r.worker = number;
  r.host = "here";
  r.role = "worker " + std::to_string(number);
  r.region_begin = begin * ms;
  std::int64_t now = r.region_begin;
  for (const phases& p : steps) {
    step_time t;
    t.begin = now;
    t.input = p.input * ms;
    t.forward = p.forward * ms;
    t.backward = p.backward * ms;
    t.update = p.update * ms;
    t.blocked = p.blocked * ms;
    t.compute_end = now + (p.input + p.forward + p.backward) * ms;
    now = t.end = t.compute_end + (p.blocked + p.update + p.other) * ms;
    r.steps.push_back(t);
  }
  r.region_end = now;
  r.samples = samples_a_step * steps.size();
  r.loss_sums = {20, 10};
  r.loss_counts = {10, 10};
  r.weights_hash = "ab";
  return r;
}

double parts_of(const run_figures& f) {
  return f.time.total();
}

} // namespace

TEST_CASE("one worker: throughput, steps and partition") {
  const run_figures f = figures_of({worker(0, 5, {{1, 3, 6, 2, 0, 0}, {1, 3, 6, 2, 0, 4}})}, false);
  CHECK(f.region_seconds == Approx(0.028));
  CHECK(f.samples_per_second == Approx(20 / 0.028));
  CHECK(f.batches_per_second == Approx(2 / 0.028));
  CHECK(f.samples_per_worker_step == 10);
  REQUIRE(f.step_seconds.size() == 1);
  CHECK(f.step_seconds[0] == std::vector<double>{0.012, 0.016});
  CHECK(f.time.input == Approx(0.001));
  CHECK(f.time.forward == Approx(0.003));
  CHECK(f.time.backward == Approx(0.006));
  CHECK(f.time.update == Approx(0.002));
  CHECK(f.time.exposed_communication == 0);
  CHECK(f.time.wait == 0);
  CHECK(f.time.other == Approx(0.002));
  CHECK(parts_of(f) == Approx(0.014));
}

TEST_CASE("being blocked is waiting until the last peer has computed, and communication from then on") {
  // Worker 0 computes 10 ms, worker 1 takes 14: of worker 0's 7 ms blocked 4 are waiting. Both end at 17.
  const run_figures f = figures_of({worker(0, 0, {{0, 4, 6, 0, 7, 0}}), worker(1, 0, {{0, 4, 10, 0, 3, 0}})}, false);
  CHECK(f.time.wait == Approx(0.004 / 2));
  CHECK(f.time.exposed_communication == Approx((0.003 + 0.003) / 2));
  CHECK(parts_of(f) == Approx(0.017));
}

TEST_CASE("waiting is at most what a worker was blocked") {
  // The step of worker 0 ended before its peer had computed: it did not wait for all of that time.
  const run_figures f = figures_of({worker(0, 0, {{0, 5, 5, 0, 2, 3}}), worker(1, 0, {{0, 10, 10, 0, 0, 0}})}, false);
  CHECK(f.time.wait == Approx(0.001));
  CHECK(f.time.exposed_communication == 0);
  CHECK(f.time.other == Approx(0.0015));
}

namespace {

// A host whose clock is ahead by so many ms, known to `uncertainty` ms.
timed_host host(const std::string& name, double ahead, double uncertainty) {
  return {name, {{{static_cast<std::int64_t>(ahead) * ms, {ahead * ms, uncertainty * ms}}}}};
}

// The same worker on a host whose clock is ahead by so many ms.
rank_record moved(rank_record w, const std::string& to, std::int64_t ahead) {
  w.host = to;
  w.region_begin += ahead * ms;
  w.region_end += ahead * ms;
  for (step_time& s : w.steps)
    for (std::int64_t step_time::*time : {&step_time::begin, &step_time::compute_end, &step_time::end})
      s.*time += ahead * ms;
  return w;
}

} // namespace

TEST_CASE("workers on hosts whose clocks differ have the figures of one host") {
  const rank_record a = worker(0, 0, {{0, 4, 6, 0, 7, 0}}), b = worker(1, 0, {{0, 4, 10, 0, 3, 0}});
  const run_figures one = figures_of({a, b}, false);
  for (const std::int64_t ahead : {5'000'000, -3'000'000, 0}) {
    const run_figures two = figures_of({a, moved(b, "there", ahead)}, false,
                                       {host("here", 0, 0.1), host("there", static_cast<double>(ahead), 0.1)});
    CHECK(two.clocks.reason.empty());
    CHECK(two.clocks.uncertainty_seconds.value() == Approx(0.0002).epsilon(0.01));
    CHECK(two.time.wait == Approx(one.time.wait));
    CHECK(two.time.exposed_communication == Approx(one.time.exposed_communication));
    CHECK(two.samples_per_second == one.samples_per_second);
    CHECK(two.step_seconds == one.step_seconds);
    CHECK(two.paces[0].last == 0.0);
    CHECK(two.paces[1].last == 1.0);
    CHECK(two.places[1].host == "there");
    REQUIRE(two.clocks.offsets.size() == 2);
    CHECK(two.clocks.offsets[1].begin.ahead_ns == Approx(static_cast<double>(ahead * ms)));
  }
  CHECK(one.clocks.offsets.empty());
  CHECK_FALSE(one.clocks.uncertainty_seconds);
}

TEST_CASE("wait and communication are not told apart if the clocks of the hosts are known too badly, or not at all") {
  const rank_record a = worker(0, 0, {{0, 4, 6, 0, 7, 0}}),
                    b = moved(worker(1, 0, {{0, 4, 10, 0, 3, 0}}), "there", 1000);
  const auto check_blocked = [](const run_figures& f) {
    CHECK(f.time.wait == 0);
    CHECK(f.time.exposed_communication == 0);
    CHECK(f.time.blocked == Approx(0.005));
    CHECK(parts_of(f) == Approx(0.017));
    CHECK_FALSE(f.paces[0].last);
    CHECK(f.paces[1].compute_seconds == Approx(0.014));
  };
  // 10 % of the step of 17 ms are 1.7 ms; the uncertainties of two hosts add up.
  CHECK(figures_of({a, b}, false, {host("here", 0, 0.8), host("there", 1000, 0.8)}).clocks.reason.empty());
  const run_figures bad = figures_of({a, b}, false, {host("here", 0, 0.9), host("there", 1000, 0.9)});
  check_blocked(bad);
  CHECK(bad.clocks.reason == "the uncertainty of the hosts' clocks is above 10 % of the median step");
  const run_figures unknown = figures_of({a, b}, false, {host("here", 0, 0)});
  check_blocked(unknown);
  CHECK(unknown.clocks.reason == "the clock of host there is unknown");
  // Under a strategy whose workers wait for no peer, all of it is communication.
  const run_figures independent = figures_of({a, b}, true, {});
  CHECK(independent.clocks.reason.empty());
  CHECK(independent.time.exposed_communication > 0);
  CHECK(independent.time.blocked == 0);
}

TEST_CASE("the pace of a worker is its step without the time that it was blocked") {
  const run_figures f = figures_of({worker(0, 0, {{1, 4, 6, 2, 7, 0}, {1, 4, 6, 2, 0, 1}, {1, 4, 6, 2, 7, 0}}),
                                    worker(1, 0, {{0, 4, 9, 0, 7, 0}, {0, 4, 3, 0, 7, 0}, {0, 4, 9, 0, 7, 0}})},
                                   false);
  CHECK(f.paces[0].compute_seconds == Approx(0.013));
  CHECK(f.paces[1].compute_seconds == Approx(0.013));
  CHECK(f.paces[0].last == Approx(1.0 / 3)); // of step 1: at 31 against 27 ms
  CHECK(f.paces[1].last == Approx(2.0 / 3));
}

TEST_CASE("a stall before a step's backward pass belongs to the step before") {
  // Both compute 10 ms a step. Worker 1 ends its backward pass of step 0 at 40 ms; worker 0 began step 1 at 10 ms and
  // is stalled from 12 to 45 ms: 28 ms of waiting for worker 1, 5 ms of bytes.
  rank_record a = worker(0, 0, {{0, 5, 5, 0, 0, 0}, {0, 5, 5, 0, 33, 0}}),
              b = worker(1, 0, {{30, 5, 5, 0, 0, 0}, {0, 5, 5, 0, 0, 0}});
  a.steps[1].stalled_at = 12 * ms;
  a.steps[1].stalled = 33 * ms;
  a.steps[1].compute_end = a.steps[1].end;
  const run_figures f = figures_of({a, record_from_json(to_json(b))}, false);
  CHECK(f.time.wait == Approx(0.028 / 2 / 2));
  CHECK(f.time.exposed_communication == Approx(0.005 / 2 / 2));
  CHECK(figures_of({record_from_json(to_json(a)), b}, false).time.wait == f.time.wait);
  // In the first step of the region nothing is left of the step before.
  a.steps[0].stalled = a.steps[0].blocked = 3 * ms;
  CHECK(figures_of({a, b}, false).time.wait == f.time.wait);
}

TEST_CASE("a worker that may be ahead by a bound waits for an earlier step; without a bound for none") {
  // Worker 1 ends its backward pass of step 0 at 40 ms. Worker 0 ends that of step 1 at 20 ms, and is blocked until 45
  // ms.
  rank_record a = worker(0, 0, {{0, 5, 5, 0, 0, 0}, {0, 5, 5, 0, 25, 0}}),
              b = worker(1, 0, {{30, 5, 5, 0, 0, 0}, {0, 5, 5, 0, 0, 0}});
  CHECK(figures_of({a, b}, true).time.wait == 0);
  a.bound = b.bound = 1;
  CHECK(figures_of({a, record_from_json(to_json(b))}, true).time.wait == Approx(0.020 / 2 / 2));
  a.bound = b.bound = 0; // local SGD: step 1 averages. Worker 1 has computed it at 50 ms, later than worker 0 goes on.
  CHECK(figures_of({a, b}, true).time.wait == Approx(0.025 / 2 / 2));
  a.bound = b.bound = 2;
  CHECK(figures_of({a, b}, true).time.wait == 0);
}

TEST_CASE("the longest worker's region counts") {
  const run_figures f = figures_of({worker(0, 0, {{0, 5, 5, 0, 0, 0}}), worker(1, 1, {{0, 5, 5, 0, 0, 2}})}, false);
  CHECK(f.region_seconds == Approx(0.012));
  CHECK(f.samples_per_second == Approx(20 / 0.012));
}

TEST_CASE("asynchronous: the first to finish ends the region, and interrupted steps count in part") {
  // Worker 0 is through after 30 ms; worker 1, at 20 ms a step, has made one and a half by then.
  const run_figures f = figures_of({worker(0, 0, {{0, 4, 4, 0, 2, 0}, {0, 4, 4, 0, 2, 0}, {0, 4, 4, 0, 2, 0}}),
                                    worker(1, 100, {{0, 8, 8, 0, 4, 0}, {0, 8, 8, 0, 4, 0}, {0, 8, 8, 0, 4, 0}})},
                                   true);
  CHECK(f.region_seconds == Approx(0.030));
  CHECK(f.counted_steps == std::vector<double>{3, 1.5});
  CHECK(f.samples_per_second == Approx((30 + 15) / 0.030));
  CHECK(f.batches_per_second == Approx(4.5 / 2 / 0.030));
  CHECK(f.step_seconds[0].size() == 3);
  CHECK(f.step_seconds[1].size() == 1);
  CHECK(f.time.wait == 0);
  CHECK(f.time.exposed_communication == Approx((0.002 + 0.004) / 2));
  CHECK(parts_of(f) == Approx((0.010 + 0.020) / 2));
}

TEST_CASE("asynchronous: a worker that ends a moment later loses no step") {
  const auto two = [](std::int64_t later) {
    rank_record a = worker(0, 0, {{0, 4, 4, 0, 2, 0}, {0, 4, 4, 0, 2, 0}});
    rank_record b = worker(1, 0, {{0, 4, 4, 0, 2, 0}, {0, 4, 4, 0, 2, 0}});
    b.steps.back().end += later;
    b.region_end += later;
    a.unit_counts = b.unit_counts = {3, 5};
    return figures_of({a, b}, true);
  };
  const run_figures together = two(0), apart = two(1);
  CHECK(together.samples_per_second == Approx(40 / 0.020));
  CHECK(apart.samples_per_second == Approx(together.samples_per_second));
  CHECK(apart.units_per_second.value() == Approx(16 / 0.020));
  CHECK(apart.region_seconds == together.region_seconds);
}

TEST_CASE("asynchronous: evaluations are no part of a step that is interrupted") {
  rank_record b = worker(1, 0, {{0, 8, 8, 0, 4, 0}, {0, 8, 8, 0, 4, 0}});
  b.steps[1].paused = 100 * ms; // after the first step
  for (std::int64_t* time : {&b.steps[1].begin, &b.steps[1].compute_end, &b.steps[1].end, &b.region_end})
    *time += 100 * ms;
  const run_figures f = figures_of({worker(0, 0, {{0, 6, 6, 0, 3, 0}, {0, 6, 6, 0, 3, 0}}), b}, true);
  CHECK(f.counted_steps == std::vector<double>{2, 1.5});
}

TEST_CASE("bytes a step are those of workers and those of servers apart") {
  rank_record w = worker(0, 0, {{0, 1, 1, 0, 0, 0}, {0, 1, 1, 0, 0, 0}});
  w.bytes_sent = 200;
  w.communication_ns = 4 * ms;
  rank_record s;
  s.rank = 1;
  s.server = 0;
  s.bytes_sent = 600;
  s.bytes_received = 400;
  s.server_update_ns = 6 * ms;
  const run_figures f = figures_of({w, s}, false);
  CHECK(f.worker_sent_bytes == 100.0);
  CHECK(f.worker_received_bytes == 0.0);
  CHECK(f.server_sent_bytes == 300.0);
  CHECK(f.server_received_bytes == 200.0);
  CHECK(f.communication_seconds == Approx(0.002));
  CHECK(f.server_update_seconds == 0.003);
  w.server = 0; // co-located: a worker's bytes hold its server's
  const run_figures g = figures_of({w}, false);
  CHECK(g.worker_sent_bytes == 100.0);
  CHECK_FALSE(g.server_sent_bytes);
  CHECK(g.server_update_seconds == 0.0);
}

TEST_CASE("losses are averaged over samples, and must be finite") {
  rank_record a = worker(0, 0, {{0, 1, 1, 0, 0, 0}}), b = worker(1, 0, {{0, 1, 1, 0, 0, 0}});
  b.loss_sums = {60, 40};
  b.loss_counts = {30, 10};
  run_figures f = figures_of({a, b}, false);
  CHECK(f.losses == std::vector<double>{2, 2.5});
  CHECK(f.loss_finite);
  b.loss_sums[1] = std::numeric_limits<double>::infinity();
  CHECK_FALSE(figures_of({a, b}, false).loss_finite);
}

TEST_CASE("replicas are compared where all were hashed") {
  rank_record a = worker(0, 0, {{0, 1, 1, 0, 0, 0}}), b = worker(1, 0, {{0, 1, 1, 0, 0, 0}});
  CHECK(figures_of({a, b}, false).replicas_identical == true);
  b.weights_hash = "cd";
  CHECK(figures_of({a, b}, false).replicas_identical == false);
  b.weights_hash = "";
  CHECK_FALSE(figures_of({a, b}, false).replicas_identical);
}

TEST_CASE("ranks with different instruction sets are named, and those of worker 0 count") {
  std::vector<rank_record> records{worker(0, 0, {{0, 1, 1, 0, 0, 0}}), worker(1, 0, {{0, 1, 1, 0, 0, 0}})};
  for (rank_record& r : records) r.isa = "avx2";
  CHECK(figures_of(records, false).warnings.empty());
  records[1].isa = "baseline";
  const run_figures f = figures_of(records, false);
  CHECK(f.isa == "avx2");
  CHECK(f.warnings ==
        std::vector<std::string>{"ranks use different instruction sets: avx2 in worker 0, and baseline in rank 1"});
}

TEST_CASE("records that are of no run are refused") {
  CHECK_THROWS_AS(figures_of({}, false), failure);
  CHECK_THROWS_WITH_AS(figures_of({worker(0, 0, {})}, false), "worker 0 measured no step", failure);
  CHECK_THROWS_WITH_AS(
      figures_of({worker(0, 0, {{0, 1, 1, 0, 0, 0}}), worker(1, 0, {{0, 1, 1, 0, 0, 0}, {0, 1, 1, 0, 0, 0}})}, false),
      "worker 1 measured 2 steps, but worker 0 measured 1", failure);
}

TEST_CASE("of several runs, medians of the sensors, and the highest of what is highest") {
  gpu_figures a, b;
  a.power_watts = 100;
  b.power_watts = 300;
  a.memory_peak_bytes = 7;
  b.memory_peak_bytes = 5;
  b.utilisation = 0.5;
  const gpu_figures g = over_runs({a, b});
  CHECK(g.power_watts == 200.0);
  CHECK(g.memory_peak_bytes == 7.0);
  CHECK(g.utilisation == 0.5);
}

TEST_CASE("losses and evaluations have their step, and when it ended in the timed region") {
  // A step of warm-up, then two timed ones of 10 ms; worker 1 takes 12. An evaluation pauses both for 5 ms in between.
  rank_record fast = worker(0, 100, {{0, 4, 6, 0, 0, 0}, {0, 4, 6, 0, 0, 0}}),
              slow = worker(1, 200, {{0, 6, 6, 0, 0, 0}, {0, 6, 6, 0, 0, 0}});
  for (rank_record* r : {&fast, &slow}) {
    r->loss_sums = {30, 20, 10};
    r->loss_counts = {10, 10, 10};
    step_time& second = r->steps[1];
    second.paused = 5 * ms;
    for (std::int64_t* t : {&second.begin, &second.compute_end, &second.end, &r->region_end}) *t += 5 * ms;
  }
  fast.metric = "top1";
  fast.metric_value = 0.5;
  fast.metric_curve = {{1, 0.1}, {2, 0.3}, {3, 0.5}};
  fast.warm_up_ns = {7e6};
  slow.warm_up_ns = {9e6};
  fast.evaluation_ns = 8 * ms;
  slow.evaluation_ns = 6 * ms;
  const run_figures f = figures_of({fast, slow}, false);
  CHECK(f.loss_steps == std::vector<std::uint64_t>{0, 1, 2});
  REQUIRE(f.loss_seconds.size() == 3);
  CHECK_FALSE(f.loss_seconds[0]); // the warm-up is not timed
  CHECK(*f.loss_seconds[1] == Approx(0.012));
  CHECK(*f.loss_seconds[2] == Approx(0.024));
  REQUIRE(f.metric_seconds.size() == 3);
  CHECK_FALSE(f.metric_seconds[0]);
  CHECK(*f.metric_seconds[1] == Approx(0.012)); // two steps were done: the warm-up's and the first timed one
  CHECK(*f.metric_seconds[2] == Approx(0.024));
  // From the begin of the first step on: with the warm-up of the slowest worker.
  REQUIRE(f.metric_training_seconds.size() == 3);
  CHECK(f.metric_training_seconds[0] == Approx(0.009));
  CHECK(f.metric_training_seconds[1] == Approx(0.021));
  CHECK(f.metric_training_seconds[2] == Approx(0.033));
  CHECK(f.evaluation_seconds == Approx(0.008));
}

TEST_CASE("a strategy's counts are over all ranks, its sums a step the mean over the ranks that report them") {
  const std::vector<phases> steps(4, {0, 1, 1, 0, 0, 0});
  rank_record a = worker(0, 0, steps), b = worker(1, 0, steps);
  a.strategy.count("staleness", 0);
  a.strategy.count("staleness", -3);
  b.strategy.count("staleness", 0);
  b.strategy.count("staleness", 7);
  a.strategy.add("encode_seconds", 1);
  a.strategy.add("encode_seconds", 3);
  b.strategy.add("encode_seconds", 8);
  b.strategy.add("only_here", 2);
  std::vector<rank_record> records;
  for (const rank_record& r : {a, b}) records.push_back(record_from_json(parsed(text_of(to_json(r)))));
  const run_figures f = figures_of(records, false);
  CHECK(f.strategy.counts.at("staleness") == std::map<std::int64_t, std::uint64_t>{{-3, 1}, {0, 2}, {7, 1}});
  CHECK(f.strategy.sums.at("encode_seconds") == Approx((4.0 + 8.0) / 2 / 4));
  CHECK(f.strategy.sums.at("only_here") == Approx(2.0 / 4));
}

TEST_CASE("a value that belongs to a step counts where the step does") {
  // Worker 0 is through after 20 ms; worker 1 has completed one step by then.
  rank_record a = worker(0, 0, {{0, 4, 4, 0, 2, 0}, {0, 4, 4, 0, 2, 0}}),
              b = worker(1, 100, {{0, 8, 8, 0, 2, 0}, {0, 8, 8, 0, 2, 0}}), server;
  server.rank = 2;
  server.server = 0;
  server.first_step = 3;
  for (const std::uint64_t step : {2, 3, 4}) { // 2: the warm-up's last
    server.strategy.count("staleness", 1, 0, step);
    server.strategy.count("staleness", 1, 0, step); // of another bucket
    server.strategy.count("staleness", static_cast<std::int64_t>(step), 1, step);
  }
  server.strategy.count("seldom", 9, 1, 4);
  server = record_from_json(to_json(server));
  const run_figures f = figures_of({a, b, server}, true);
  CHECK(f.strategy.counts.size() == 1);
  CHECK(f.strategy.counts.at("staleness") == std::map<std::int64_t, std::uint64_t>{{1, 4}, {3, 1}});
  CHECK(figures_of({a, b, server}, false).strategy.counts.at("staleness") ==
        std::map<std::int64_t, std::uint64_t>{{1, 4}, {3, 1}, {4, 1}});
}

// SPDX-License-Identifier: Apache-2.0
//
// The steps of docs/algorithms.md: how many messages of a training step have to wait for one another. Counted by the
// virtual clock: what a training step takes longer where every message takes a second longer.
#include "matrix.hpp"
#include "simulator/step_trace.hpp"
#include "timeline/rank_trace.hpp"

using namespace regatta;
using namespace regatta::test;

namespace {

constexpr std::uint64_t second = 1'000'000'000; // so that nothing hides behind what is computed

std::uint64_t in_seconds(std::uint64_t ns) {
  CHECK(ns % second == 0);
  return ns / second;
}
std::uint64_t takes(const registry& from, simulation_setup s, std::uint64_t latency, std::uint64_t steps) {
  s.network.latency_ns = latency;
  s.steps = steps;
  return simulate(from, s).virtual_ns;
}

// Of `period` training steps in the middle of a run: after what begins it and what the simulation evaluates at first.
std::uint64_t steps_of(const simulation_setup& s, std::uint64_t period = 1) {
  const auto more = [&](std::uint64_t latency) {
    return takes(plugins(), s, latency, 6 * period) - takes(plugins(), s, latency, 5 * period);
  };
  return in_seconds(more(2 * second) - more(second));
}
// Of a run of one training step.
std::uint64_t steps_of_one(const registry& from, const simulation_setup& s) {
  return in_seconds(takes(from, s, 2 * second, 1) - takes(from, s, second, 1));
}

simulation_setup setup_of(const char* strategy, std::uint64_t workers, std::uint64_t servers = 0,
                          std::map<std::string, nlohmann::json> parameters = {}) {
  simulation_setup s;
  s.strategy = strategy;
  s.parameters = std::move(parameters);
  s.workers = static_cast<std::uint32_t>(workers);
  s.servers = static_cast<std::uint32_t>(servers);
  s.tensors = {static_cast<std::int64_t>(16 * std::max<std::uint64_t>(workers * servers, workers))}; // a part for each
  return s;
}

std::uint64_t log2_floor(std::uint64_t n) {
  std::uint64_t log = 0;
  while (n >>= 1) ++log;
  return log;
}

} // namespace

TEST_CASE("none takes no step, allreduce those of its algorithm") {
  for (std::uint64_t n = 1; n <= 8; ++n) {
    CAPTURE(n);
    const auto by = [&](const char* algorithm) {
      return steps_of(setup_of("allreduce", n, 0, {{"algorithm", algorithm}}));
    };
    const bool power = (n & (n - 1)) == 0;
    CHECK(steps_of(setup_of("none", n)) == 0);
    CHECK(by("ring") == 2 * (n - 1));
    CHECK(by("halving_doubling") == 2 * log2_floor(n) + (power ? 0 : 2));
    // A partner that has not joined another sends while the pair still joins; of 7, two pairs are partners.
    CHECK(by("recursive_doubling") == log2_floor(n) + (power ? 0 : n == 7 ? 2 : 1));
    CHECK(by("circulant") == 2 * log2_floor(2 * n - 1)); // ceil(log2 n)
    CHECK(by("sharded") == (n > 1 ? 2 : 0));
  }
  for (const auto& [m, h] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{{2, 2}, {4, 2}, {2, 3}, {3, 3}}) {
    simulation_setup s = setup_of("allreduce", m * h, 0, {{"algorithm", "hierarchical"}});
    s.hosts = static_cast<std::uint32_t>(h);
    CHECK(steps_of(s) == 2 * (m - 1) + 2 * (h - 1));
  }
}

TEST_CASE("reduce-scatter and all-gather take n - 1 steps each, broadcasts floor(log2 n) or n") {
  const registry own = registry({REGATTA_TEST_STRATEGIES}).loading();
  for (std::uint64_t n = 1; n <= 8; ++n) {
    CAPTURE(n);
    CHECK(steps_of_one(own, setup_of("rooted", n, 0, {{"broadcast", "tree"}})) == 2 * (n - 1) + log2_floor(n));
    CHECK(steps_of_one(own, setup_of("rooted", n, 0, {{"broadcast", "scatter_gather"}})) ==
          2 * (n - 1) + (n > 1 ? n : 0));
  }
}

TEST_CASE("parameter servers: a push and an answer, however many there are") {
  for (std::uint64_t workers = 1; workers <= 8; ++workers)
    for (std::uint64_t servers = 1; servers <= 4; ++servers) {
      CAPTURE(workers);
      CAPTURE(servers);
      CHECK(steps_of(setup_of("sync_ps", workers, servers)) == 2);
      CHECK(steps_of(setup_of("async_ps", workers, servers)) == 2);
      CHECK(steps_of(setup_of("async_ps", workers, servers, {{"bound", 0}})) == 2);
      CHECK(steps_of(setup_of("geo_ps", workers, servers, {{"k", 3}}), 3) == 2);
      CHECK(steps_of(setup_of("dgc", workers, servers, {{"exchange", "servers"}, {"dense_below", 1}})) == 2);
    }
}

TEST_CASE("local_sgd takes a ring's steps every k, dgc's all-gather one, its dense tensors 2 ceil(log2 n)") {
  for (std::uint64_t n = 1; n <= 8; ++n) {
    CAPTURE(n);
    CHECK(steps_of(setup_of("local_sgd", n, 0, {{"k", 3}}), 3) == 2 * (n - 1));
    CHECK(steps_of(setup_of("dgc", n, 0, {{"dense_below", 1}})) == (n > 1 ? 1 : 0));
    CHECK(steps_of(setup_of("dgc", n)) == 2 * log2_floor(2 * n - 1));
  }
}

// A worker's push leaves with the request of its next step: both have arrived when that is answered.
TEST_CASE("rows of sparse tables: gradients cross, or a request and an answer; with geo_ps a push and an answer") {
  for (std::uint64_t workers = 2; workers <= 4; ++workers) {
    CAPTURE(workers);
    const auto with_rows = [](simulation_setup s) {
      s.tensors.clear();
      s.table_rows = 40;
      return s;
    };
    CHECK(steps_of(with_rows(setup_of("allreduce", workers))) == 1);
    for (std::uint64_t servers = 1; servers <= 3; ++servers) {
      CAPTURE(servers);
      CHECK(steps_of(with_rows(setup_of("sync_ps", workers, servers))) == 2);
      CHECK(steps_of(with_rows(setup_of("async_ps", workers, servers))) == 2);
      CHECK(steps_of(with_rows(setup_of("geo_ps", workers, servers, {{"k", 3}})), 3) == 2);
    }
  }
}

TEST_CASE("clipping by a global norm adds the steps of adding it up, where it is not known everywhere") {
  for (std::uint64_t n = 2; n <= 8; n *= 2) {
    simulation_setup s = setup_of("allreduce", n, 0, {{"algorithm", "sharded"}});
    s.optimizer.clip_norm = 0.5;
    CHECK(steps_of(s) == 2 + 2 * log2_floor(n));
    s.parameters = {{"algorithm", "ring"}};
    CHECK(steps_of(s) == 2 * (n - 1));
  }
  for (std::uint64_t servers = 1; servers <= 4; ++servers) {
    simulation_setup s = setup_of("sync_ps", 2, servers);
    s.optimizer.clip_norm = 0.5;
    CHECK(steps_of(s) == 2 + (servers > 1 ? 2 : 0));
  }
}

TEST_CASE("a strategy's own function works on the buffers, and takes the declared time, with ghosts too") {
  const registry from = registry::of_files({REGATTA_TEST_STRATEGIES "/runs_function.so"});
  const auto run = [&](std::map<std::string, nlohmann::json> parameters, bool ghosts = false) {
    simulation_setup s = setup_of("runs_function", 1, 0, std::move(parameters));
    s.steps = 1;
    s.ghosts = ghosts;
    return simulate(from, s);
  };
  const simulation_setup none = [&] {
    simulation_setup s = setup_of("none", 1);
    s.steps = 1;
    return s;
  }();
  CHECK(run({}).weights != simulate(plugins(), none).weights);
  for (const bool ghosts : {false, true}) {
    CAPTURE(ghosts);
    const std::uint64_t free = run({}, ghosts).virtual_ns;
    CHECK(run({{"bytes", 10'000'000'000}}, ghosts).virtual_ns - free == second);
    CHECK(run({{"bytes", 10'000'000'000}, {"flops", 20'000'000'000}}, ghosts).virtual_ns - free == 2 * second);
    // 2 size^3 operations at 10 GFLOP/s; of a smaller one, 3 size^2 elements at 10 GB/s.
    CHECK(run({{"size", 100}}, ghosts).virtual_ns - free == 200'000);
    CHECK(run({{"size", 5}}, ghosts).virtual_ns - free == 30);
  }
  // Two workers on one core: their functions take turns, their timers do not.
  const auto on_one_core = [&](const char* name, std::int64_t value) {
    simulation_setup s = setup_of("runs_function", 2, 0, {{name, value}});
    s.steps = 1;
    s.cores = {{{1, 0}}, {0, 0}, 1};
    return simulate(from, s).virtual_ns;
  };
  const std::uint64_t least = on_one_core("pause", 0);
  CHECK(on_one_core("bytes", 10'000'000'000) - least == 2 * second);
  CHECK(on_one_core("pause", 1'000'000'000) - least == second);
  CHECK_THROWS_WITH(run({{"throws", true}}), doctest::Contains("the function gives up"));
  CHECK_NOTHROW(run({{"throws", true}}, true)); // ghosts have no bytes: it is not called
}

TEST_CASE("the trace of a simulation has a strategy's functions and products with their times") {
  const registry from = registry::of_files({REGATTA_TEST_STRATEGIES "/runs_function.so"});
  simulation_setup s = setup_of("runs_function", 1, 0, {{"bytes", 10'000'000'000}, {"size", 100}});
  s.steps = 1;
  trace_recorder recorder(1'000);
  const steps_to_trace steps = {.recorders = {&recorder},
                                .is_worker = {true},
                                .tensors = std::vector<std::string>(s.tensors.size(), "tensor"),
                                .count = 1};
  s.trace = &steps;
  simulate(from, s);
  const rank_trace t = rank_trace_from(recorder.take(0, "worker 0"));
  std::vector<std::pair<std::string, std::uint64_t>> functions;
  for (const trace_event& e : t.events)
    if (e.origin == event_origin::functions) functions.emplace_back(t.text(e.name), e.end - e.begin);
  CHECK(functions == std::vector<std::pair<std::string, std::uint64_t>>{{"run", second}, {"gemm", 200'000}});
}

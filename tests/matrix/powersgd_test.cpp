// SPDX-License-Identifier: Apache-2.0
//
// The example examples/custom_strategy/powersgd.cpp under virtual time. `regatta check` tests it as any strategy.
#include "matrix.hpp"

using namespace regatta;
using namespace regatta::test;

namespace {

const registry& example() {
  static const registry r = registry::of_files({REGATTA_POWERSGD});
  return r;
}

simulation_setup setup_of(std::vector<std::vector<std::int64_t>> shapes) {
  simulation_setup s;
  s.strategy = "powersgd";
  s.workers = 3;
  s.shapes = std::move(shapes);
  s.tensors.clear();
  for (const auto& shape : s.shapes) {
    s.tensors.push_back(1);
    for (const std::int64_t d : shape) s.tensors.back() *= d;
  }
  return s;
}

std::uint64_t bytes_of(const simulation_result& r) {
  std::uint64_t sum = 0;
  for (const auto& c : r.counted) sum += c.bytes_sent;
  return sum;
}

} // namespace

TEST_CASE("two columns of P and Q for matrices and convolutions, vectors as they are; with ghosts, too") {
  simulation_setup s = setup_of({{40, 30}, {7}, {12, 3, 3, 3}, {3, 2}});
  const simulation_result r = simulate(example(), s);
  replicas_identical(r);
  // Both tensors that stay whole take a cache line. A buffer is filled up to chunks of 16 elements for each rank; a
  // ring sends each element 2 (n - 1) times, over all ranks.
  const auto filled_up = [](std::uint64_t n) { return (n + 47) / 48 * 48; };
  const std::uint64_t elements = filled_up(2 * (40 + 12) + 16 + 16) + filled_up(2 * (30 + 27));
  CHECK(bytes_of(r) == s.steps * elements * 2 * (s.workers - 1) * sizeof(float));
  s.ghosts = true;
  const simulation_result ghosts = simulate(example(), s);
  CHECK(bytes_of(ghosts) == bytes_of(r));
  CHECK(ghosts.virtual_ns == r.virtual_ns);
}

TEST_CASE("one worker stands for all, as its plan declares") {
  for (const std::uint32_t workers : {2, 8, 64}) {
    CAPTURE(workers);
    // Buffers that are cut evenly among up to 64 workers: 2 columns of 512 rows, and 1024 elements that stay whole.
    simulation_setup s = setup_of({{512, 512}, {1024}});
    s.workers = workers;
    s.ghosts = true;
    s.network.latency_ns = 7'000;
    const simulation_result whole = simulate(example(), s);
    s.fold = folding::checked;
    const simulation_result folded = simulate(example(), s);
    CHECK(folded.whole == "");
    CHECK(!folded.rounded);
    CHECK(folded.simulated == 2);
    CHECK(folded.steps == whole.steps);
    CHECK(folded.virtual_ns == whole.virtual_ns);
    CHECK(bytes_of(folded) == bytes_of(whole));
  }
}

TEST_CASE("without matrices it is an all-reduce") {
  simulation_setup s = setup_of({{10}, {100}});
  equals_serial(s, simulate(example(), s));
}

TEST_CASE("one worker applies what it compresses; the rest follows in later steps") {
  simulation_setup s = setup_of({{12, 20}});
  s.workers = 1;
  s.constant = true;
  s.optimizer.plugin = "sgd";
  s.optimizer.momentum = 0;
  const auto distance = [&](std::uint64_t steps) {
    s.steps = steps;
    const auto found = simulate(example(), s).weights.at(0);
    const auto expected = train_serially(s);
    double all = 0, moved = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      all += (found[i] - expected[i]) * (found[i] - expected[i]);
      const double from = padding_of(s)[i] ? 0 : initial_weight(i);
      moved += (expected[i] - from) * (expected[i] - from);
    }
    return all / moved;
  };
  // The residual stays as large as some gradients, so what is missing of the sum falls with the number of steps.
  CHECK(distance(200) < 0.1 * distance(20));
}

TEST_CASE("clipping by a global norm is refused") {
  simulation_setup s = setup_of({{12, 20}});
  s.optimizer.clip_norm = 0.5;
  CHECK_THROWS_WITH(simulate(example(), s), doctest::Contains("expected no clipping"));
}

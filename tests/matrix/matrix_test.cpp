// SPDX-License-Identifier: Apache-2.0
//
// Every strategy x 1 to 8 workers x 1 to 4 servers, in one process under virtual time: equals the serial run, replicas
// to the bit the same, nothing left under way; and the steps and bytes of each algorithm are those of
// docs/algorithms.md.
#include "simulation/simulation.hpp"

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::test;

namespace {

const registry& plugins() {
  static const registry r({REGATTA_PLUGINS});
  return r;
}

void equals_serial(const simulation_setup& s, const simulation_result& r) {
  const auto expected = train_serially(s);
  REQUIRE(r.weights.size() == s.workers);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // fp32 against double over a few steps of unit gradients.
    REQUIRE(r.weights[0][i] == doctest::Approx(expected[i]).epsilon(1e-5));
    for (const auto& w : r.weights) REQUIRE(w[i] == r.weights[0][i]);
  }
  CHECK(r.left_over == 0);
}

std::vector<network_options> networks() {
  std::vector<network_options> all;
  for (const bool eager : {true, false})
    for (const bool adds : {true, false}) all.push_back({eager, adds, false, 1000, 1.0});
  return all;
}

} // namespace

TEST_CASE("allreduce equals the serial run, whatever the algorithm, the ranks and the network") {
  for (const char* algorithm : {"ring", "halving_doubling", "auto"})
    for (std::uint32_t workers = 1; workers <= 8; ++workers)
      for (const auto& network : networks())
        for (const double clip : {0.0, 0.5}) {
          CAPTURE(algorithm);
          CAPTURE(workers);
          CAPTURE(network.eager);
          CAPTURE(network.adds);
          CAPTURE(clip);
          simulation_setup s;
          s.strategy = "allreduce";
          s.parameters = {{"algorithm", algorithm}, {"bucket", 256}, {"lanes", 3}};
          s.workers = workers;
          s.network = network;
          s.optimizer.clip_norm = clip;
          s.straggler_ns = workers % 3 ? 0 : 50'000;
          equals_serial(s, simulate(plugins(), s));
        }
}

TEST_CASE("allreduce takes the transport's own where there is one") {
  for (std::uint32_t workers = 2; workers <= 8; ++workers) {
    simulation_setup s;
    s.strategy = "allreduce";
    s.parameters = {{"algorithm", "native"}, {"bucket", 256}};
    s.workers = workers;
    s.network.collectives = true;
    const auto r = simulate(plugins(), s);
    equals_serial(s, r);
    for (const auto& c : r.counted) CHECK(c.messages_sent == 0);
  }
}

TEST_CASE("sync_ps equals the serial run, whatever the ranks and the network") {
  for (std::uint32_t workers = 1; workers <= 8; ++workers)
    for (std::uint32_t servers = 1; servers <= 4; ++servers)
      for (const bool colocate : {false, true})
        for (const auto& network : networks())
          for (const double clip : {0.0, 0.5}) {
            CAPTURE(workers);
            CAPTURE(servers);
            CAPTURE(colocate);
            CAPTURE(network.eager);
            CAPTURE(network.adds);
            CAPTURE(clip);
            simulation_setup s;
            s.strategy = "sync_ps";
            s.parameters = {{"bucket", 256}, {"ahead", 2}};
            s.workers = workers;
            s.servers = servers;
            s.colocate = colocate;
            s.network = network;
            s.optimizer.clip_norm = clip;
            s.straggler_ns = workers % 3 ? 0 : 50'000;
            equals_serial(s, simulate(plugins(), s));
          }
}

TEST_CASE("none trains every worker alone and sends nothing") {
  simulation_setup s;
  s.strategy = "none";
  s.workers = 3;
  const auto r = simulate(plugins(), s);
  CHECK(r.weights[0] != r.weights[1]);
  for (const auto& c : r.counted) CHECK(c.messages_sent == 0);
}

TEST_CASE("a run is the same, to the bit and to the nanosecond, every time") {
  simulation_setup s;
  s.strategy = "sync_ps";
  s.workers = 4;
  s.servers = 3;
  s.network.eager = false;
  const auto a = simulate(plugins(), s), b = simulate(plugins(), s);
  CHECK(a.weights == b.weights);
  CHECK(a.virtual_ns == b.virtual_ns);
}

// Bytes and messages, as docs/algorithms.md gives them. One bucket of E elements, E a multiple of 16 n: equal parts.
TEST_CASE("ring: 2(n-1) messages of B/n bytes a rank") {
  for (std::uint64_t n = 2; n <= 8; ++n) {
    simulation_setup s;
    s.strategy = "allreduce";
    s.parameters = {{"algorithm", "ring"}};
    s.workers = static_cast<std::uint32_t>(n);
    s.steps = 1;
    s.tensors = {static_cast<std::int64_t>(16 * n * 3)};
    const std::uint64_t bytes = 16 * n * 3 * 4;
    for (const auto& c : simulate(plugins(), s).counted) {
      CHECK(c.messages_sent == 2 * (n - 1));
      CHECK(c.bytes_sent == 2 * (n - 1) * bytes / n);
      CHECK(c.bytes_received == c.bytes_sent);
    }
  }
}

TEST_CASE(
    "halving and doubling: 2 log2(n) messages and the ring's bytes for powers of two, one or two more messages else") {
  for (const std::uint64_t n : {2, 4, 8}) {
    simulation_setup s;
    s.strategy = "allreduce";
    s.parameters = {{"algorithm", "halving_doubling"}};
    s.workers = static_cast<std::uint32_t>(n);
    s.steps = 1;
    s.tensors = {static_cast<std::int64_t>(16 * n * 3)};
    const std::uint64_t bytes = 16 * n * 3 * 4, log2 = n == 2 ? 1 : n == 4 ? 2 : 3;
    for (const auto& c : simulate(plugins(), s).counted) {
      CHECK(c.messages_sent == 2 * log2);
      CHECK(c.bytes_sent == 2 * (n - 1) * bytes / n);
    }
  }
  for (const std::uint64_t n : {3, 5, 6, 7}) {
    const std::uint64_t half = n < 4 ? 2 : 4, log2 = n < 4 ? 1 : 2, extra = n - half, elements = 16 * half * 3;
    simulation_setup s;
    s.strategy = "allreduce";
    s.parameters = {{"algorithm", "halving_doubling"}};
    s.workers = static_cast<std::uint32_t>(n);
    s.steps = 1;
    s.tensors = {static_cast<std::int64_t>(elements)};
    const auto r = simulate(plugins(), s);
    for (std::uint64_t rank = 0; rank < n; ++rank) {
      const bool joins = rank < 2 * extra && rank % 2 == 0, joined = rank < 2 * extra && rank % 2 == 1;
      CHECK(r.counted[rank].messages_sent == (joins ? 1 : 2 * log2 + (joined ? 1 : 0)));
      CHECK(r.counted[rank].bytes_sent ==
            (joins ? elements * 4 : 2 * (half - 1) * elements * 4 / half + (joined ? elements * 4 : 0)));
    }
  }
}

TEST_CASE("sync_ps: a worker sends and receives B bytes a step, a server W B / S") {
  for (std::uint64_t workers = 1; workers <= 4; ++workers)
    for (std::uint64_t servers = 1; servers <= 4; ++servers) {
      simulation_setup s;
      s.strategy = "sync_ps";
      s.workers = static_cast<std::uint32_t>(workers);
      s.servers = static_cast<std::uint32_t>(servers);
      s.steps = 3;
      const std::uint64_t elements = 16 * servers * 5, bytes = elements * 4;
      s.tensors = {static_cast<std::int64_t>(elements)};
      const auto r = simulate(plugins(), s);
      for (std::uint64_t w = 0; w < workers; ++w) {
        CHECK(r.counted[w].bytes_sent == 3 * bytes);
        CHECK(r.counted[w].bytes_received == 3 * bytes);
        CHECK(r.counted[w].messages_sent == 3 * servers + servers); // and goodbye
      }
      for (std::uint64_t k = 0; k < servers; ++k) {
        CHECK(r.counted[workers + k].bytes_sent == 3 * workers * bytes / servers);
        CHECK(r.counted[workers + k].bytes_received == 3 * workers * bytes / servers);
      }
    }
}

TEST_CASE("a step's communication hides behind the backward pass where there is time for it") {
  simulation_setup s;
  s.strategy = "allreduce";
  s.parameters = {{"algorithm", "ring"}, {"bucket", 64}};
  s.workers = 2;
  s.steps = 10;
  s.network.latency_ns = 10;
  s.network.bytes_per_ns = 10;
  simulation_setup alone = s;
  alone.strategy = "none";
  alone.parameters = {};
  const auto with = simulate(plugins(), s).virtual_ns, without = simulate(plugins(), alone).virtual_ns;
  CHECK(with < without + without / 20);
}

TEST_CASE("64 ghost ranks of 15 million weights take no memory of theirs") {
  simulation_setup s;
  s.strategy = "allreduce";
  s.parameters = {{"algorithm", "ring"}, {"bucket", 64 << 20}};
  s.workers = 64;
  s.steps = 1;
  s.ghosts = true;
  s.tensors = {15'254'602};
  const auto r = simulate(plugins(), s);
  CHECK(r.left_over == 0);
  CHECK(r.counted[0].messages_sent == 2 * 63);
}

// SPDX-License-Identifier: Apache-2.0
//
// The formulas of docs/algorithms.md for messages and bytes, and what hides behind what: as the network in virtual time
// counts them. steps_test.cpp has the steps.
#include "matrix.hpp"

#include "cluster/peers.hpp"
#include "cluster/plan.hpp"
#include "registry/parameters.hpp"

#include <bit>
#include <set>
#include <string>
#include <utility>

using namespace regatta;
using namespace regatta::test;

// Bytes and messages, as docs/algorithms.md gives them. One bucket of E elements, E a multiple of 16 n: equal parts.
TEST_CASE("ring and sharded update: 2(n-1) messages of B/n bytes a rank") {
  for (const char* algorithm : {"ring", "sharded"})
    for (const auto& network : networks())
      for (std::uint64_t n = 2; n <= 8; ++n) {
        CAPTURE(algorithm);
        CAPTURE(network.eager);
        CAPTURE(n);
        simulation_setup s;
        s.strategy = "allreduce";
        s.parameters = {{"algorithm", algorithm}};
        s.workers = static_cast<std::uint32_t>(n);
        s.network = network;
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

TEST_CASE("circulant: 2 ceil(log2 n) messages and the ring's bytes for every n, also of dgc's dense tensors") {
  for (const char* strategy : {"allreduce", "dgc"})
    for (const std::uint64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 31, 33}) {
      CAPTURE(strategy);
      CAPTURE(n);
      simulation_setup s;
      s.strategy = strategy;
      if (s.strategy == "allreduce") s.parameters = {{"algorithm", "circulant"}};
      s.workers = static_cast<std::uint32_t>(n);
      s.steps = 1;
      s.tensors = {static_cast<std::int64_t>(16 * n * 3)}; // below dgc's dense_below
      const std::uint64_t bytes = 16 * n * 3 * 4;
      const auto steps = static_cast<std::uint64_t>(std::bit_width(n - 1));
      for (const auto& c : simulate(plugins(), s).counted) {
        CHECK(c.messages_sent == 2 * steps);
        CHECK(c.bytes_sent == 2 * (n - 1) * bytes / n);
        CHECK(c.bytes_received == c.bytes_sent);
      }
    }
}

TEST_CASE(
    "recursive doubling: log2(n) messages of B bytes for powers of two, one more for those that are joined else") {
  for (std::uint64_t n = 1; n <= 8; ++n) {
    CAPTURE(n);
    const std::uint64_t log2 = n == 1 ? 0 : n < 4 ? 1 : n < 8 ? 2 : 3, extra = n - (1u << log2), elements = 48;
    simulation_setup s;
    s.strategy = "allreduce";
    s.parameters = {{"algorithm", "recursive_doubling"}};
    s.workers = static_cast<std::uint32_t>(n);
    s.steps = 1;
    s.tensors = {static_cast<std::int64_t>(elements)};
    const auto r = simulate(plugins(), s);
    for (std::uint64_t rank = 0; rank < n; ++rank) {
      const bool joins = rank < 2 * extra && rank % 2 == 0, joined = rank < 2 * extra && rank % 2 == 1;
      CHECK(r.counted[rank].messages_sent == (joins ? 1 : log2 + (joined ? 1 : 0)));
      CHECK(r.counted[rank].bytes_sent == r.counted[rank].messages_sent * elements * 4);
    }
  }
}

TEST_CASE("ring, doubling and circulant connect only ranks that exchange messages; sparse tables connect all workers") {
  const component& allreduce = plugins().find(kind::strategy, "allreduce");
  for (const char* algorithm : {"ring", "halving_doubling", "recursive_doubling", "circulant"})
    for (const std::uint32_t n : {2, 4, 8, 3, 5, 6, 7, 12}) {
      CAPTURE(algorithm);
      CAPTURE(n);
      simulation_setup s;
      s.strategy = "allreduce";
      s.parameters = {{"algorithm", algorithm}};
      s.workers = n;
      s.steps = 1;
      s.tensors = {16 * n * 3};
      const auto counted = simulate(plugins(), s).counted;
      std::set<std::pair<std::uint32_t, std::uint32_t>> exchanged; // pairs of ranks, in both orders
      for (std::uint32_t rank = 0; rank < n; ++rank)
        for (const auto& [to, count] : counted[rank].sent_to) {
          exchanged.emplace(rank, to.first);
          exchanged.emplace(to.first, rank);
        }
      const parameter_values values(allreduce, s.parameters);
      const cluster_layout layout = cluster_layout::make(n, 0, false);
      rg_cluster all = layout.view(UINT32_MAX);
      const bool rotates = std::string(algorithm) == "ring" || std::string(algorithm) == "circulant";
      const bool only_partners = rotates || std::has_single_bit(n);
      std::size_t connected = 0;
      for (std::uint32_t rank = 0; rank < n; ++rank)
        for (const std::uint32_t peer : peers_of(allreduce.strategy, values.data(), all, rank, false)) {
          CHECK((!only_partners || exchanged.contains({rank, peer})));
          ++connected;
        }
      CHECK(connected == (only_partners ? exchanged.size() : n * (n - 1)));
      all.flags = RG_HOST_TABLES;
      CHECK(peers_of(allreduce.strategy, values.data(), all, 0, false).size() == n - 1);
      s.table_rows = 20;
      CHECK_NOTHROW(simulate(plugins(), s));
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
        CHECK(r.counted[workers + k].messages_sent == 3 * workers);
        CHECK(r.counted[workers + k].bytes_sent == 3 * workers * bytes / servers);
        CHECK(r.counted[workers + k].bytes_received == 3 * workers * bytes / servers);
      }
    }
}

TEST_CASE(
    "sync_ps, co-located: what a rank would send to itself crosses no network, and the sums stay the serial run's") {
  for (std::uint64_t n = 1; n <= 4; ++n) {
    simulation_setup s;
    s.strategy = "sync_ps";
    s.workers = s.servers = static_cast<std::uint32_t>(n);
    s.colocate = true;
    s.steps = 3;
    const std::uint64_t elements = 16 * n * 5, bytes = elements * 4;
    s.tensors = {static_cast<std::int64_t>(elements)};
    const auto r = simulate(plugins(), s);
    equals_serial(s, r);
    for (const auto& c : r.counted) { // as a worker and as a server
      CHECK(c.bytes_sent == 3 * 2 * (n - 1) * bytes / n);
      CHECK(c.messages_sent == 3 * 2 * (n - 1) + (n - 1)); // and goodbye
    }
  }
}

// Messages and bytes of a norm of all gradients if not every worker has all sums.
TEST_CASE("clipping by a global norm: 16 bytes from and to every server, or among workers that hold shards") {
  simulation_setup s;
  s.workers = 2;
  const auto more = [&] { // messages and bytes, of all ranks together
    virtual_network::counts sum;
    for (const double clip : {0.5, 0.0}) {
      s.optimizer.clip_norm = clip;
      for (const auto& c : simulate(plugins(), s).counted) {
        sum.messages_sent += clip ? c.messages_sent : -c.messages_sent;
        sum.bytes_sent += clip ? c.bytes_sent : -c.bytes_sent;
      }
    }
    return std::pair(sum.messages_sent, sum.bytes_sent);
  };
  const auto pair_of = [](std::uint64_t messages, std::uint64_t bytes) { return std::pair(messages, bytes); };
  s.strategy = "sync_ps";
  for (s.servers = 1; s.servers <= 4; ++s.servers)
    CHECK(more() == pair_of(s.steps * 2 * (s.servers - 1), s.steps * 2 * (s.servers - 1) * 16));
  s.strategy = "allreduce";
  s.servers = 0;
  for (const std::uint32_t n : {2u, 4u, 8u}) { // each sends its own, and the sum on: 2 (n - 1) of two numbers in all
    s.workers = n;
    s.parameters = {{"algorithm", "sharded"}};
    const std::uint64_t log2 = n == 2 ? 1 : n == 4 ? 2 : 3;
    CHECK(more() == pair_of(s.steps * n * 2 * log2, s.steps * 2 * (n - 1) * 16));
    s.parameters = {{"algorithm", "ring"}};
    CHECK(more() == pair_of(0, 0));
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

TEST_CASE("sync_ps: the next step begins before the last weights are there") {
  simulation_setup s;
  s.strategy = "sync_ps";
  s.parameters = {{"bucket", 256}};
  s.workers = 2;
  s.servers = 1;
  s.steps = 20;
  s.tensors = std::vector<std::int64_t>(8, 256);
  s.network.bytes_per_ns = 0.5; // 1 KiB of a tensor: 2 us each way, two workers: what is computed does not hide it
  const auto early = simulate(plugins(), s);
  s.parameters["early"] = false;
  const auto late = simulate(plugins(), s);
  CHECK(early.weights == late.weights);
  CHECK(early.virtual_ns < late.virtual_ns);
}

TEST_CASE("1000 ghost ranks on 125 hosts") {
  for (const char* algorithm : {"halving_doubling", "hierarchical"}) {
    simulation_setup s;
    s.strategy = "allreduce";
    s.parameters = {{"algorithm", algorithm}, {"bucket", 64 << 20}};
    s.workers = 1000;
    s.hosts = 125;
    s.steps = 1;
    s.ghosts = true;
    s.tensors = {15'254'602};
    const auto r = simulate(plugins(), s);
    CHECK(r.left_over == 0);
    CHECK(r.counted[999].messages_sent > 0);
  }
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

TEST_CASE("ghosts of host memory: allreduce takes the algorithms that it takes with bytes") {
  for (const std::int64_t elements : {1 << 18, 1 << 10}) {
    CAPTURE(elements);
    simulation_setup s;
    s.strategy = "allreduce";
    s.tensors = {elements};
    s.parameters = {{"bucket", 4 << 20}};
    s.workers = 4;
    s.network.collectives = true;
    const auto bytes = simulate(plugins(), s);
    s.ghosts = s.on_host = true;
    const auto ghosts = simulate(plugins(), s);
    CHECK(!ghosts.records[0].counts.empty());
    CHECK(ghosts.records[0].counts == bytes.records[0].counts);
    for (const auto& c : ghosts.counted) {
      CHECK((c.messages_sent != 0) == (elements > 1 << 16));                         // else the transport's own
      CHECK(c.bytes_sent == s.steps * 2 * 3 * static_cast<std::uint64_t>(elements)); // 2 (n - 1) / n
      CHECK(c.bytes_received == c.bytes_sent);
    }
  }
}

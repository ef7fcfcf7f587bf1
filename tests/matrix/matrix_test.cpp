// SPDX-License-Identifier: Apache-2.0
//
// Every strategy x 1 to 8 workers x 1 to 4 servers, in one process under virtual time: equals the serial run, replicas
// to the bit the same, nothing left under way. What crosses for it is in traffic_test.cpp, how many steps in
// steps_test.cpp.
#include "matrix.hpp"

#include <cmath>
#include <numeric>
#include <utility>

using namespace regatta;
using namespace regatta::test;

TEST_CASE("allreduce equals the serial run, whatever the algorithm, the ranks and the network") {
  for (const char* algorithm : {"ring", "halving_doubling", "recursive_doubling", "circulant", "auto", "sharded"})
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
          s.late_ns = workers % 2 ? 0 : 200'000;
          equals_serial(s, simulate(plugins(), s));
        }
}

// Sums of `cancelling` gradients are exactly 0, also with two bytes an element: a wrong summand moves a weight.
TEST_CASE("allreduce, circulant: exact sums for any number of workers and for chunks of any lengths") {
  std::vector<std::uint32_t> all(17);
  std::iota(all.begin(), all.end(), 1u);
  all.insert(all.end(), {31, 33});
  for (const std::uint32_t n : all)
    for (const std::int64_t elements : {16 * 3 * n, 16 * n + 16, 16 * (n / 2 + 1), 16u, 40u})
      for (const char* wire : {"fp32", "bf16", "fp16"}) {
        CAPTURE(n);
        CAPTURE(elements);
        CAPTURE(wire);
        simulation_setup s;
        s.strategy = "allreduce";
        s.parameters = {{"algorithm", "circulant"}, {"wire", wire}};
        s.workers = n;
        s.steps = 2;
        s.tensors = {elements};
        s.cancelling = true;
        const auto r = simulate(plugins(), s);
        replicas_identical(r);
        for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i)
          REQUIRE(r.weights[0][i] == initial_weight(i));
        if (wire != std::string("fp32")) continue;
        s.cancelling = false;
        equals_serial(s, simulate(plugins(), s));
      }
}

// Ghosts stand for memory that the host cannot read. The values that collectives make of it are checked on a fake
// device (tests/device).
TEST_CASE("allreduce, sharded: messages in host memory, the transport's own collectives elsewhere if it has them") {
  for (std::uint32_t workers = 2; workers <= 8; ++workers)
    for (const bool collectives : {false, true})
      for (const bool ghosts : {false, true}) {
        CAPTURE(workers);
        CAPTURE(collectives);
        CAPTURE(ghosts);
        simulation_setup s;
        s.strategy = "allreduce";
        s.parameters = {{"algorithm", "sharded"}, {"bucket", 256}};
        s.workers = workers;
        s.network.collectives = collectives;
        s.ghosts = ghosts;
        const auto r = simulate(plugins(), s);
        CHECK(r.left_over == 0);
        if (!ghosts) equals_serial(s, r);
        for (const auto& c : r.counted) CHECK((c.messages_sent == 0) == (collectives && ghosts));
      }
}

TEST_CASE("allreduce by itself: the algorithm depends on bucket size, workers and hosts alone, and is recorded") {
  const auto chosen = [](std::uint64_t bytes, std::uint32_t workers, std::uint32_t hosts = 1,
                         bool collectives = false) {
    simulation_setup s;
    s.strategy = "allreduce";
    s.workers = workers;
    s.hosts = hosts;
    s.network.collectives = collectives;
    s.steps = 2;
    s.tensors = {static_cast<std::int64_t>(bytes / 4)};
    const auto r = simulate(plugins(), s);
    equals_serial(s, r);
    for (const auto& record : r.records) {
      REQUIRE(record.counts.size() == (workers > 1 ? 1 : 0));
      CHECK(record.counts == r.records[0].counts);
    }
    if (workers == 1) return std::string("none");
    const auto& [name, seen] = *r.records[0].counts.begin();
    CHECK(seen == std::map<std::int64_t, std::uint64_t>{{static_cast<std::int64_t>(bytes), s.steps}});
    return name;
  };
  CHECK(chosen(64, 1) == "none");
  CHECK(chosen(64, 2) == "algorithm_recursive_doubling");
  CHECK(chosen(128 << 10, 2) == "algorithm_recursive_doubling");
  CHECK(chosen(256 << 10, 2) == "algorithm_ring");
  CHECK(chosen(4 << 10, 3) == "algorithm_recursive_doubling");
  CHECK(chosen(256 << 10, 3) == "algorithm_ring");
  CHECK(chosen(32 << 10, 4) == "algorithm_recursive_doubling");
  CHECK(chosen(64 << 10, 4) == "algorithm_halving_doubling");
  CHECK(chosen(32 << 10, 8) == "algorithm_recursive_doubling");
  CHECK(chosen(512 << 10, 8) == "algorithm_halving_doubling");
  CHECK(chosen(64 << 10, 5) == "algorithm_ring");
  CHECK(chosen(512 << 10, 7) == "algorithm_ring");
  CHECK(chosen(256 << 10, 4, 2) == "algorithm_hierarchical");
  CHECK(chosen(4 << 10, 4, 2) == "algorithm_recursive_doubling");
  CHECK(chosen(256 << 10, 2, 2) == "algorithm_ring"); // a worker on each host
  CHECK(chosen(256 << 10, 3, 2) == "algorithm_ring"); // hosts with different numbers of workers
  CHECK(chosen(16 << 10, 5, 5) == "algorithm_recursive_doubling");
  CHECK(chosen(64 << 10, 5, 5) == "algorithm_circulant");
  CHECK(chosen(64 << 10, 5, 2) == "algorithm_circulant");
  CHECK(chosen(256 << 10, 5, 5) == "algorithm_ring");
  CHECK(chosen(256 << 10, 7, 7) == "algorithm_circulant");
  CHECK(chosen(64 << 10, 10, 5) == "algorithm_hierarchical");
  CHECK(chosen(256 << 10, 4, 1, true) == "algorithm_native");
  CHECK(chosen(1 << 20, 2, 1, true) == "algorithm_sharded");
}

// Of momentum one number an element, of Adam two; all of them on every worker, or an n-th.
TEST_CASE("allreduce, sharded: every worker keeps an n-th of the optimiser's state, which all keep whole otherwise") {
  for (const auto& [rule, numbers] : std::map<std::string, std::uint64_t>{{"momentum", 1}, {"adam", 2}})
    for (std::uint64_t n = 1; n <= 8; ++n)
      for (const char* algorithm : {"ring", "sharded"}) {
        CAPTURE(rule);
        CAPTURE(n);
        CAPTURE(algorithm);
        simulation_setup s;
        s.strategy = "allreduce";
        s.parameters = {{"algorithm", algorithm}, {"bucket", static_cast<std::int64_t>(64 * n)}};
        s.workers = static_cast<std::uint32_t>(n);
        s.optimizer.plugin = rule;
        s.tensors = {static_cast<std::int64_t>(16 * n * 3), static_cast<std::int64_t>(16 * n)};
        const auto r = simulate(plugins(), s);
        const std::uint64_t whole = arena_elements(s) * numbers * sizeof(float);
        REQUIRE(r.state_bytes.size() == n);
        for (const std::uint64_t bytes : r.state_bytes)
          CHECK(bytes == (algorithm == std::string("sharded") ? whole / n : whole));
      }
}

TEST_CASE("reduce-scatter, all-gather and broadcast of a transport, as a strategy asks for them") {
  const registry own = registry({REGATTA_TEST_STRATEGIES}).loading();
  simulation_setup s;
  s.strategy = "rooted";
  for (std::uint32_t workers = 2; workers <= 8; ++workers) {
    CAPTURE(workers);
    s.workers = workers;
    s.network.collectives = true;
    equals_serial(s, simulate(own, s));
  }
  s.network.collectives = false;
  CHECK_THROWS_WITH_AS(simulate(own, s), doctest::Contains("lacks a collective"), std::exception);
}

TEST_CASE("collectives that the transport does not take yet begin later, in the order in which they were asked for") {
  const registry own = registry({REGATTA_TEST_STRATEGIES}).loading();
  simulation_setup s;
  s.network.collectives = s.network.hesitates = true;
  for (s.workers = 2; s.workers <= 4; ++s.workers) {
    CAPTURE(s.workers);
    s.strategy = "rooted";
    s.parameters = {};
    equals_serial(s, simulate(own, s));
    s.strategy = "allreduce";
    s.parameters = {{"algorithm", "native"}, {"bucket", 256}}; // several at once
    equals_serial(s, simulate(plugins(), s));
  }
}

TEST_CASE("all ranks begin native all-reduces in the same order, whatever the order in which they see them end") {
  simulation_setup s;
  s.network.collectives = s.network.staggers = true;
  s.strategy = "allreduce";
  s.parameters = {{"algorithm", "native"}, {"bucket", 64}, {"lanes", 4}};
  for (s.workers = 2; s.workers <= 5; ++s.workers) {
    CAPTURE(s.workers);
    equals_serial(s, simulate(plugins(), s));
  }
}

// The strategy's gradients go round a ring, 2(n-1) messages of B/n; what comes on top is the broadcast, from the last
// rank.
TEST_CASE("broadcasts over messages equal the serial run, with the bytes and messages of each") {
  const registry own = registry({REGATTA_TEST_STRATEGIES}).loading();
  for (std::uint64_t n = 1; n <= 8; ++n)
    for (const auto& network : networks())
      for (const char* how : {"tree", "scatter_gather"}) {
        CAPTURE(n);
        CAPTURE(network.eager);
        CAPTURE(how);
        simulation_setup s;
        s.strategy = "rooted";
        s.parameters = {{"broadcast", how}};
        s.workers = static_cast<std::uint32_t>(n);
        s.network = network;
        s.steps = 1;
        s.tensors = {static_cast<std::int64_t>(16 * n * 3)};
        const std::uint64_t bytes = 16 * n * 3 * 4, ring = 2 * (n - 1);
        const auto r = simulate(own, s);
        equals_serial(s, r);
        const auto& root = r.counted[n - 1];
        std::uint64_t steps = 0; // ceil(log2 n)
        while ((std::uint64_t{1} << steps) < n) ++steps;
        std::uint64_t sent = 0;
        for (const auto& c : r.counted) sent += c.messages_sent - ring;
        if (how == std::string("tree")) {
          CHECK(root.messages_sent == ring + steps);
          CHECK(root.bytes_sent == ring * bytes / n + steps * bytes);
          CHECK(sent == n - 1); // everybody gets it once
          continue;
        }
        CHECK(root.messages_sent == ring + 2 * (n - 1));
        CHECK(root.bytes_sent == 2 * ring * bytes / n);
        for (std::uint64_t rank = 0; rank + 1 < n; ++rank) {
          CHECK(r.counted[rank].messages_sent == ring + n - 1);
          CHECK(r.counted[rank].bytes_sent == (ring + n - 1) * bytes / n);
        }
      }
}

TEST_CASE("allreduce by itself shards the update of large buckets that cross as they are") {
  simulation_setup s;
  s.strategy = "allreduce";
  s.workers = 2;
  s.steps = 2;
  const auto sharded = [&](std::int64_t elements) {
    s.tensors = {elements};
    const auto r = simulate(plugins(), s);
    if (!s.parameters.contains("wire")) equals_serial(s, r);
    return r.records[0].counts.contains("algorithm_sharded");
  };
  CHECK(sharded(128 << 10));
  CHECK(!sharded((128 << 10) - 64));
  s.workers = 4;
  CHECK(!sharded(128 << 10));
  CHECK(sharded(256 << 10));
  s.network.collectives = true;
  CHECK(sharded(256 << 10));
  s.parameters = {{"wire", "bf16"}};
  CHECK(!sharded(256 << 10));
  s.parameters = {{"wire", "bf16"}, {"algorithm", "sharded"}};
  CHECK_THROWS_WITH_AS(simulate(plugins(), s), doctest::Contains("sends weights"), std::exception);
}

TEST_CASE("allreduce inside hosts and then between them equals the serial run") {
  for (const auto& [workers, hosts] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {2, 2}, {4, 2}, {6, 2}, {6, 3}, {8, 2}, {8, 4}, {8, 8}, {12, 3}})
    for (const auto& network : networks())
      for (const char* wire : {"fp32", "bf16"}) {
        CAPTURE(workers);
        CAPTURE(hosts);
        CAPTURE(network.eager);
        CAPTURE(network.adds);
        simulation_setup s;
        s.strategy = "allreduce";
        s.parameters = {{"algorithm", "hierarchical"}, {"bucket", 256}, {"wire", wire}};
        s.workers = workers;
        s.hosts = hosts;
        s.network = network;
        s.straggler_ns = workers % 4 ? 50'000 : 0;
        s.late_ns = hosts % 4 ? 200'000 : 0;
        const auto r = simulate(plugins(), s);
        if (wire == std::string("fp32"))
          equals_serial(s, r);
        else
          replicas_identical(r);
      }
}

TEST_CASE("hierarchical needs hosts with equally many workers, and says so") {
  simulation_setup s;
  s.strategy = "allreduce";
  s.parameters = {{"algorithm", "hierarchical"}};
  s.workers = 3;
  s.hosts = 2;
  CHECK_THROWS_WITH_AS(simulate(plugins(), s), doctest::Contains("equally many workers"), std::exception);
}

// Of m ranks on each of h hosts: what crosses between hosts is what the hierarchy saves.
TEST_CASE("hierarchical: 2(m-1)/m B inside a host and 2(h-1)/h B/m between hosts") {
  for (const auto& [m, h] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{{2, 2}, {4, 2}, {2, 3}, {4, 4}}) {
    simulation_setup s;
    s.strategy = "allreduce";
    s.parameters = {{"algorithm", "hierarchical"}};
    s.workers = static_cast<std::uint32_t>(m * h);
    s.hosts = static_cast<std::uint32_t>(h);
    s.steps = 1;
    s.tensors = {static_cast<std::int64_t>(16 * m * h * 3)};
    const std::uint64_t bytes = 16 * m * h * 3 * 4;
    for (const auto& c : simulate(plugins(), s).counted) {
      CHECK(c.messages_sent == 2 * (m - 1) + 2 * (h - 1));
      CHECK(c.bytes_sent == 2 * (m - 1) * bytes / m + 2 * (h - 1) * bytes / m / h);
    }
  }
}

TEST_CASE("two bytes on the wire: half the bytes, identical replicas, and the serial run within its rounding") {
  for (const char* strategy : {"allreduce", "sync_ps"})
    for (const char* algorithm : {"ring", "halving_doubling", "recursive_doubling", "circulant"})
      for (const char* wire : {"bf16", "fp16"})
        for (std::uint32_t workers = 1; workers <= 8; ++workers)
          for (const auto& network : networks()) {
            CAPTURE(strategy);
            CAPTURE(algorithm);
            CAPTURE(wire);
            CAPTURE(workers);
            simulation_setup s;
            s.strategy = strategy;
            s.parameters = {{"wire", wire}, {"bucket", 256}};
            const bool ps = s.strategy == "sync_ps";
            if (!ps) s.parameters["algorithm"] = algorithm;
            s.workers = workers;
            s.servers = ps ? 2 : 0;
            s.colocate = workers % 2;
            s.network = network;
            const auto r = simulate(plugins(), s);
            replicas_identical(r);
            // Gradients below 1 at a rate of 0.01 over 5 steps: each rounding of 2^-9 (bf16) of them, and of weights
            // below 0.1 where they cross, too, changes a weight by at most some 2^-9 of 0.1.
            const auto expected = train_serially(s);
            for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(std::abs(r.weights[0][i] - expected[i]) < 2e-3);
            s.parameters["wire"] = "fp32";
            const auto whole = simulate(plugins(), s);
            for (std::size_t rank = 0; rank < r.counted.size(); ++rank)
              CHECK(2 * r.counted[rank].bytes_sent == whole.counted[rank].bytes_sent);
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
    for (const char* algorithm : {"native", "auto"})
      for (const char* wire : {"bf16", "fp16"}) {
        s.parameters = {{"algorithm", algorithm}, {"bucket", 256}, {"wire", wire}};
        const auto rounded = simulate(plugins(), s);
        replicas_identical(rounded);
        CHECK(rounded.weights != r.weights);
        // As for messages of two bytes an element.
        const auto expected = train_serially(s);
        for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(std::abs(rounded.weights[0][i] - expected[i]) < 2e-3);
        for (const auto& c : rounded.counted) CHECK(c.messages_sent == 0);
      }
  }
  simulation_setup s;
  s.strategy = "allreduce";
  s.parameters = {{"algorithm", "native"}, {"wire", "bf16"}};
  s.workers = 2;
  CHECK_THROWS_WITH_AS(simulate(plugins(), s), doctest::Contains("that has this wire type"), std::exception);
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
            s.late_ns = workers % 2 ? 0 : 200'000;
            equals_serial(s, simulate(plugins(), s));
          }
}

TEST_CASE("tables: allreduce keeps replicas that equal the serial run, with and without dense tensors") {
  for (std::uint32_t workers = 1; workers <= 8; ++workers)
    for (const auto& network : networks())
      for (const auto& [algorithm, clip] :
           std::vector<std::pair<const char*, double>>{{"auto", 0.0}, {"auto", 0.5}, {"sharded", 0.0}})
        for (const bool dense : {true, false}) {
          CAPTURE(workers);
          CAPTURE(network.eager);
          CAPTURE(algorithm);
          CAPTURE(clip);
          CAPTURE(dense);
          simulation_setup s;
          s.strategy = "allreduce";
          s.parameters = {{"bucket", 256}, {"algorithm", algorithm}};
          s.workers = workers;
          s.network = network;
          s.optimizer.clip_norm = clip;
          s.table_rows = 40;
          if (!dense) s.tensors.clear();
          s.straggler_ns = workers % 3 ? 0 : 50'000;
          s.late_ns = workers % 2 ? 0 : 200'000;
          const auto r = simulate(plugins(), s);
          equals_serial(s, r);
          table_equals_serial(s, r.worker_rows[0]);
          for (std::uint32_t w = 1; w < workers; ++w) CHECK(r.worker_rows[w] == r.worker_rows[0]);
        }
}

TEST_CASE("tables: the servers of sync_ps hold together what the serial run has, and never a row nobody asked for") {
  for (std::uint32_t workers = 1; workers <= 8; ++workers)
    for (std::uint32_t servers = 1; servers <= 4; ++servers)
      for (const bool colocate : {false, true})
        for (const auto& network : networks())
          for (const double clip : {0.0, 0.5})
            for (const bool dense : {true, false}) {
              CAPTURE(workers);
              CAPTURE(servers);
              CAPTURE(colocate);
              CAPTURE(network.eager);
              CAPTURE(clip);
              CAPTURE(dense);
              simulation_setup s;
              s.strategy = "sync_ps";
              s.parameters = {{"bucket", 256}, {"ahead", 2}};
              s.workers = workers;
              s.servers = servers;
              s.colocate = colocate;
              s.network = network;
              s.optimizer.clip_norm = clip;
              s.table_rows = 1000;
              if (!dense) s.tensors.clear();
              s.straggler_ns = workers % 3 ? 0 : 50'000;
              s.late_ns = workers % 2 ? 0 : 200'000;
              const auto r = simulate(plugins(), s);
              equals_serial(s, r);
              std::map<std::uint64_t, std::vector<float>> all;
              std::uint64_t held = 0;
              for (const auto& rows : r.server_rows) all.insert(rows.begin(), rows.end());
              for (const std::uint64_t h : r.server_held) held += h;
              std::set<std::uint64_t> asked;
              for (std::uint32_t w = 0; w < workers; ++w) {
                for (std::uint64_t step = 0; step < s.steps; ++step)
                  for (const std::uint64_t row : rows_touched(s, w, step)) asked.insert(row);
                for (const std::uint64_t row : rows_touched(s, w, 1001)) asked.insert(row); // the evaluation's
              }
              table_equals_serial(s, all);
              CHECK(held == asked.size());
            }
}

TEST_CASE("tables: a server of a table larger than any machine holds what was asked for") {
  simulation_setup s;
  s.strategy = "sync_ps";
  s.workers = 2;
  s.servers = 2;
  s.steps = 1;
  s.table_rows = 1'000'000'000; // 20 GB, were it all there
  std::set<std::uint64_t> asked;
  for (std::uint32_t w = 0; w < s.workers; ++w)
    for (const std::uint64_t row : rows_touched(s, w, 0)) asked.insert(row);
  const auto r = simulate(plugins(), s);
  CHECK(r.server_held[2] + r.server_held[3] == asked.size());
}

// As docs/algorithms.md has it: R_w rows of D elements each are touched by worker w.
TEST_CASE("tables: bytes and messages of a step") {
  for (std::uint32_t workers = 1; workers <= 4; ++workers) {
    simulation_setup s;
    s.strategy = "allreduce";
    s.workers = workers;
    s.steps = 1;
    s.tensors.clear();
    s.table_rows = 40;
    const auto bytes_of = [&](std::uint32_t w) {
      return rows_touched(s, w, 0).size() * (8 + 4 * static_cast<std::uint64_t>(s.table_row));
    };
    const auto gathered = simulate(plugins(), s);
    for (std::uint32_t w = 0; w < workers; ++w) {
      CHECK(gathered.counted[w].messages_sent == 2 * (workers - 1));
      CHECK(gathered.counted[w].bytes_sent == (workers - 1) * bytes_of(w));
    }
    for (const auto& [strategy, servers] : std::vector<std::pair<const char*, std::uint32_t>>{
             {"sync_ps", 1}, {"sync_ps", 2}, {"sync_ps", 3}, {"async_ps", 1}, {"async_ps", 2}, {"async_ps", 3}}) {
      s.strategy = strategy;
      s.servers = servers;
      const auto r = simulate(plugins(), s);
      for (std::uint32_t w = 0; w < workers; ++w) {
        std::set<std::uint64_t> asked; // servers that hold a row of this step
        for (const std::uint64_t row : rows_touched(s, w, 0)) asked.insert(row % servers);
        // The request's header is two words; goodbye is one.
        CHECK(r.counted[w].messages_sent == servers + asked.size() + servers);
        CHECK(r.counted[w].bytes_sent == servers * 16 + bytes_of(w) + servers * 8);
        CHECK(r.counted[w].messages_received == asked.size());
        CHECK(r.counted[w].bytes_received ==
              rows_touched(s, w, 0).size() * 4 * static_cast<std::uint64_t>(s.table_row));
      }
    }
  }
}

TEST_CASE("none trains every worker alone and sends nothing") {
  simulation_setup s;
  s.strategy = "none";
  s.straggler_ns = 50'000;
  s.late_ns = 200'000;
  for (s.workers = 1; s.workers <= 8; ++s.workers) {
    const auto r = simulate(plugins(), s);
    REQUIRE(r.weights.size() == s.workers);
    for (std::uint32_t w = 1; w < s.workers; ++w) CHECK(r.weights[w] != r.weights[w - 1]);
    for (const auto& c : r.counted) CHECK(c.messages_sent == 0);
    if (s.workers == 1) weights_are(r, train_serially(s));
  }
}

TEST_CASE("none: worker 0 of several trains as one worker does on the same samples") {
  for (const std::string rule : {"sgd", "momentum", "adagrad", "adam"})
    for (const double clip : {0.0, 100.0}) {
      CAPTURE(rule);
      CAPTURE(clip);
      simulation_setup s;
      s.strategy = "none";
      s.optimizer.plugin = rule;
      s.optimizer.clip_norm = clip;
      s.tensors = {300'000, 7, 16}; // more than a piece
      s.table_rows = 50;
      s.workers = 1;
      const auto one = simulate(plugins(), s);
      s.workers = 4;
      const auto four = simulate(plugins(), s);
      double moved = 0;
      const std::vector<char> padding = padding_of(s);
      for (std::size_t i = 0; i < one.weights[0].size(); ++i) {
        if (padding[i]) continue;
        moved = std::max(moved, std::abs(static_cast<double>(one.weights[0][i]) - initial_weight(i)));
        REQUIRE(four.weights[0][i] == doctest::Approx(one.weights[0][i]).epsilon(1e-5));
      }
      CHECK(moved > 1e-4);
      REQUIRE(four.worker_rows[0].size() == one.worker_rows[0].size());
      for (const auto& [row, values] : one.worker_rows[0])
        for (std::size_t e = 0; e < values.size(); ++e)
          REQUIRE(four.worker_rows[0].at(row)[e] == doctest::Approx(values[e]).epsilon(1e-5));
    }
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

// SPDX-License-Identifier: Apache-2.0
//
// Strategies whose workers do not move in step, under virtual time: what they must equal where they are told to be
// synchronous, how far they may run apart where they are not, and their steps and bytes.
#include "matrix.hpp"

#include <utility>

using namespace regatta;
using namespace regatta::test;

namespace {

std::uint64_t seen(const simulation_result& r, const std::string& name) {
  std::uint64_t n = 0;
  for (const auto& record : r.records)
    if (const auto at = record.by_step.find(name); at != record.by_step.end())
      for (const auto& s : at->second) n += s.times;
  return n;
}
std::int64_t largest(const simulation_result& r, const std::string& name) {
  std::int64_t most = 0;
  for (const auto& record : r.records)
    if (const auto at = record.by_step.find(name); at != record.by_step.end())
      for (const auto& s : at->second) most = std::max(most, s.value);
  return most;
}

// Calls f(setup) for 1 to 8 workers on 1 to 4 servers, beside each other and on ranks of their own, over every network.
template <class F> void everywhere(const char* strategy, std::map<std::string, nlohmann::json> parameters, F f) {
  for (std::uint32_t workers = 1; workers <= 8; ++workers)
    for (std::uint32_t servers = 1; servers <= 4; ++servers)
      for (const bool colocate : {false, true})
        for (const auto& network : networks()) {
          CAPTURE(workers);
          CAPTURE(servers);
          CAPTURE(colocate);
          CAPTURE(network.eager);
          CAPTURE(network.adds);
          simulation_setup s;
          s.strategy = strategy;
          s.parameters = parameters;
          s.workers = workers;
          s.servers = servers;
          s.colocate = colocate;
          s.network = network;
          s.straggler_ns = workers % 3 ? 0 : 50'000;
          s.late_ns = workers % 2 ? 0 : 200'000;
          f(s);
        }
}

} // namespace

TEST_CASE("async_ps with bound 0 equals the serial run, whatever the ranks and the network") {
  everywhere("async_ps", {{"bucket", 256}, {"bound", 0}}, [](const simulation_setup& s) {
    const auto r = simulate(plugins(), s);
    equals_serial(s, r);
    CHECK(largest(r, "staleness") == 0);
  });
}

TEST_CASE("async_ps ends with one set of weights for all and every push counted, whatever the ranks and the network") {
  everywhere("async_ps", {{"bucket", 256}}, [](const simulation_setup& s) {
    const auto r = simulate(plugins(), s);
    replicas_identical(r);
    std::uint64_t shards = 0;
    const std::uint64_t bucket = std::max<std::uint64_t>(256, 64 * s.servers) / 4, arena = arena_elements(s);
    for (std::uint64_t first = 0; first < arena; first += bucket)
      shards += std::min<std::uint64_t>(s.servers, (std::min(bucket, arena - first) + 15) / 16);
    CHECK(seen(r, "staleness") == s.workers * s.steps * shards);
  });
}

TEST_CASE("async_ps with one worker equals the serial run: there is nobody else") {
  simulation_setup s;
  s.strategy = "async_ps";
  s.servers = 2;
  const auto r = simulate(plugins(), s);
  equals_serial(s, r);
  CHECK(largest(r, "staleness") == 0);
}

TEST_CASE("async_ps cannot wait for a norm, and says so before it is made") {
  simulation_setup s;
  s.strategy = "async_ps";
  s.servers = 1;
  s.optimizer.clip_norm = 1;
  CHECK_THROWS_WITH_AS(simulate(plugins(), s), doctest::Contains("set optimizer.clip_norm to 0"), std::exception);
}

TEST_CASE("async_ps: fast workers do not wait for a slow one; with a bound they do") {
  simulation_setup s;
  s.strategy = "async_ps";
  s.workers = 4;
  s.servers = 1;
  s.steps = 20;
  s.straggler_ns = 200'000;
  const auto free = simulate(plugins(), s);
  // Three workers did 60 steps while the slow one did its first few: its pushes had missed many updates.
  CHECK(largest(free, "staleness") >= 15);
  for (const std::int64_t bound : {1, 2, 4}) {
    CAPTURE(bound);
    s.parameters = {{"bound", bound}};
    const auto r = simulate(plugins(), s);
    replicas_identical(r);
    // Each of the three others is at most `bound` steps ahead when it begins one, so it pushes at most bound + 1 times
    // while the slow one is at its step, and as many more by when that one began.
    CHECK(largest(r, "staleness") <= 3 * (2 * bound + 1));
    CHECK(largest(r, "staleness") > 0);
  }
}

TEST_CASE("async_ps: a worker sends B bytes a step and receives B, and once more B at the end") {
  for (std::uint64_t workers = 1; workers <= 4; ++workers)
    for (std::uint64_t servers = 1; servers <= 4; ++servers) {
      simulation_setup s;
      s.strategy = "async_ps";
      s.workers = static_cast<std::uint32_t>(workers);
      s.servers = static_cast<std::uint32_t>(servers);
      s.steps = 3;
      const std::uint64_t elements = 16 * servers * 5, bytes = elements * 4;
      s.tensors = {static_cast<std::int64_t>(elements)};
      const auto r = simulate(plugins(), s);
      for (std::uint64_t w = 0; w < workers; ++w) {
        CHECK(r.counted[w].bytes_sent == 3 * bytes);
        CHECK(r.counted[w].bytes_received == (3 + 1) * bytes);
        CHECK(r.counted[w].messages_sent == 3 * servers + servers); // and goodbye
      }
      for (std::uint64_t k = 0; k < servers; ++k) {
        CHECK(r.counted[workers + k].messages_sent == (3 + 1) * workers);
        CHECK(r.counted[workers + k].bytes_sent == (3 + 1) * workers * bytes / servers);
        CHECK(r.counted[workers + k].bytes_received == 3 * workers * bytes / servers);
      }
    }
}

TEST_CASE("tables: async_ps with bound 0 equals the serial run, with and without dense tensors") {
  everywhere("async_ps", {{"bucket", 256}, {"bound", 0}}, [](simulation_setup s) {
    s.table_rows = 1000;
    for (const bool dense : {true, false}) {
      CAPTURE(dense);
      if (!dense) s.tensors.clear();
      const auto r = simulate(plugins(), s);
      if (dense) equals_serial(s, r);
      CHECK(r.left_over == 0);
      table_equals_serial(s, rows_of_servers(r));
      CHECK(largest(r, "staleness") == 0);
    }
  });
}

TEST_CASE("tables: async_ps begins everybody with the rows as they start, however late one is") {
  for (const std::uint64_t late : {0, 50'000, 5'000'000}) {
    CAPTURE(late);
    simulation_setup s;
    s.strategy = "async_ps";
    s.workers = 3;
    s.servers = 2;
    s.steps = 1;
    s.late_ns = late;
    s.table_rows = 50;          // few, so that workers share some
    s.optimizer.plugin = "sgd"; // pushes of one step then commute
    table_equals_serial(s, rows_of_servers(simulate(plugins(), s)));
  }
}

TEST_CASE("tables: async_ps comes to its end with any bound and counts every push") {
  for (const int bound : {-1, 1, 3})
    everywhere("async_ps", {{"bucket", 256}, {"bound", bound}}, [&](simulation_setup s) {
      CAPTURE(bound);
      s.table_rows = 1000;
      s.tensors.clear();
      const auto r = simulate(plugins(), s);
      CHECK(r.left_over == 0);
      CHECK(seen(r, "staleness") == s.workers * s.steps * s.servers);
      if (bound >= 0) CHECK(largest(r, "staleness") <= (s.workers - 1) * (2 * bound + 1));
      if (s.workers == 1) table_equals_serial(s, rows_of_servers(r));
    });
}

TEST_CASE("tables: geo_ps adds up to local training, averaged, at the end of a period") {
  everywhere("geo_ps", {{"bucket", 256}, {"k", 5}}, [](simulation_setup s) {
    s.table_rows = 1000;
    for (const bool dense : {true, false}) {
      CAPTURE(dense);
      if (!dense) s.tensors.clear();
      const auto r = simulate(plugins(), s);
      const auto expected = train_locally(s, 5);
      if (dense) weights_are(r, expected);
      CHECK(r.left_over == 0);
      table_is(s, rows_of_servers(r), expected);
    }
  });
}

TEST_CASE("tables: geo_ps with one worker equals the serial run, whatever the period") {
  for (const int k : {1, 2, 3, 400}) {
    CAPTURE(k);
    simulation_setup s;
    s.strategy = "geo_ps";
    s.parameters = {{"k", k}};
    s.servers = 2;
    s.steps = 7;
    s.table_rows = 1000;
    table_equals_serial(s, rows_of_servers(simulate(plugins(), s)));
  }
}

TEST_CASE("tables: geo_ps brings a worker what others pushed, of rows it never touched, too") {
  simulation_setup s;
  s.strategy = "geo_ps";
  s.parameters = {{"k", 2}};
  s.workers = 3;
  s.servers = 2;
  s.steps = 6;
  s.table_rows = 1000;
  s.straggler_ns = 500'000; // worker 1 reaches the servers after the other workers have finished
  std::set<std::uint64_t> own;
  for (std::uint64_t step = 0; step < s.steps; ++step)
    for (const std::uint64_t row : rows_touched(s, 1, step)) own.insert(row);
  for (const bool adds : {true, false}) {
    CAPTURE(adds);
    s.parameters["merge"] = adds ? "add" : "replace";
    const auto r = simulate(plugins(), s);
    const auto all = rows_of_servers(r);
    const auto& copies = r.worker_rows[1];
    CHECK(copies.size() == all.size());
    std::size_t compared = 0;
    for (const auto& [row, values] : all) {
      if (adds && own.count(row)) continue; // it keeps its own progress there
      ++compared;
      for (std::size_t e = 0; e < values.size(); ++e)
        REQUIRE(copies.at(row)[e] == doctest::Approx(values[e]).epsilon(1e-6)); // moved there by a difference
    }
    CHECK(compared > 5);
    CHECK(r.worker_rows[0].size() < all.size()); // what came after it had left
  }
}

namespace {

// Pushes in the order in which the only server took them: whose, and the last step of their period.
std::vector<strategy_records::of_step> pushes_of(const simulation_setup& s, const simulation_result& r) {
  return r.records[s.workers].by_step.at("staleness");
}

// The rule as docs/algorithms.md has it, in fp32 and in its order of operations.
struct geo_rule {
  bool adds;
  float share; // 1 / workers
  void push(float& server, const float& own, float& old) const {
    float delta = own - old;
    if (adds) {
      delta *= share;
      old += delta;
      server += delta;
    } else {
      const float part = share * delta;
      server += part;
    }
  }
  void answer(float server, float& own, float& old) const {
    const float news = server - (adds ? old : own);
    own += news;
    old = server;
  }
};

float trained(const simulation_setup& s, std::uint32_t w, std::uint64_t step, std::uint64_t element, float weight) {
  const float gradient = gradient_of(w, s.workers, step, element, weight) * static_cast<float>(s.workers);
  const float change = static_cast<float>(s.optimizer.lr) * gradient;
  return weight - change;
}

simulation_setup to_replay(bool adds, std::uint64_t k) {
  simulation_setup s;
  s.strategy = "geo_ps";
  s.parameters = {{"k", k}, {"merge", adds ? "add" : "replace"}};
  s.servers = 1;
  s.steps = 20;
  s.optimizer.plugin = "sgd";
  s.optimizer.lr = 0.2;
  return s;
}

} // namespace

TEST_CASE("geo_ps: dense weights are merged by Paddle's rule, or replaced, to the bit") {
  std::vector<std::vector<float>> ends;
  for (const bool adds : {true, false})
    for (std::uint32_t workers = 2; workers <= 3; ++workers) { // each at its own time: no two pushes overlap
      CAPTURE(adds);
      CAPTURE(workers);
      const std::uint64_t k = 3; // 20 steps: what is left over is pushed at the end
      simulation_setup s = to_replay(adds, k);
      s.workers = workers;
      s.late_ns = 13'000;
      s.straggler_ns = 9'000;
      const auto r = simulate(plugins(), s);
      const auto pushes = pushes_of(s, r);
      CHECK(pushes.size() == workers * 7);
      CHECK(largest(r, "staleness") > 0);
      const geo_rule rule{adds, static_cast<float>(1.0 / workers)};
      std::vector<float> end;
      const std::vector<char> padding = padding_of(s);
      for (std::uint64_t i = 0; i < arena_elements(s); ++i) {
        if (padding[i]) continue;
        float server = initial_weight(i);
        std::vector<float> own(workers, server), old(workers, server);
        for (const auto& p : pushes) {
          for (std::uint64_t step = p.step + 1 - k; step <= p.step && step < s.steps; ++step)
            own[p.worker] = trained(s, p.worker, step, i, own[p.worker]);
          rule.push(server, own[p.worker], old[p.worker]);
          rule.answer(server, own[p.worker], old[p.worker]);
          if (!adds) own[p.worker] = server; // dense weights are overwritten
        }
        REQUIRE(r.weights[0][i] == server);
        end.push_back(server);
      }
      replicas_identical(r);
      ends.push_back(end);
    }
  CHECK(ends[0] != ends[2]); // the rules differ
}

TEST_CASE("tables: geo_ps merges rows by Paddle's rule, or replaces them, to the bit") {
  std::vector<rows_of_table> ends;
  for (const bool adds : {true, false}) {
    CAPTURE(adds);
    const std::uint64_t k = 2;
    simulation_setup s = to_replay(adds, k);
    s.workers = 2;
    s.tensors.clear();
    s.table_rows = 30; // few, so that workers share most
    s.late_ns = 4'000;
    const auto r = simulate(plugins(), s);
    const auto pushes = pushes_of(s, r);
    CHECK(pushes.size() == 2 * 10);
    CHECK(largest(r, "staleness") > 0);
    const geo_rule rule{adds, static_cast<float>(1.0 / s.workers)};
    const auto row = static_cast<std::uint64_t>(s.table_row), elements = 30 * row;
    std::vector<float> server(elements);
    for (std::uint64_t e = 0; e < elements; ++e) server[e] = initial_weight(e);
    std::vector<std::vector<float>> own(2, server), old(2, server);
    std::vector<std::set<std::uint64_t>> untold(2);
    for (const auto& p : pushes) {
      std::set<std::uint64_t> touched;
      for (std::uint64_t step = p.step + 1 - k; step <= p.step; ++step)
        for (const std::uint64_t t : rows_touched(s, p.worker, step)) {
          const bool first = touched.insert(t).second;
          for (std::uint64_t e = t * row; e < (t + 1) * row; ++e) {
            float& weight = own[p.worker][e];
            if (first && !adds) old[p.worker][e] = weight;
            weight = trained(s, p.worker, step, e, weight);
          }
        }
      for (const std::uint64_t t : touched)
        for (std::uint64_t e = t * row; e < (t + 1) * row; ++e)
          rule.push(server[e], own[p.worker][e], old[p.worker][e]);
      for (auto& rows : untold) rows.insert(touched.begin(), touched.end());
      for (const std::uint64_t t : std::exchange(untold[p.worker], {}))
        for (std::uint64_t e = t * row; e < (t + 1) * row; ++e)
          rule.answer(server[e], own[p.worker][e], old[p.worker][e]);
    }
    const auto is = [&](const rows_of_table& rows, const std::vector<float>& expected) {
      CHECK(rows.size() > 20);
      for (const auto& [t, values] : rows)
        for (std::uint64_t e = 0; e < row; ++e) REQUIRE(values[e] == expected[t * row + e]);
    };
    is(r.server_rows[2], server);
    for (std::uint32_t w = 0; w < 2; ++w) is(r.worker_rows[w], own[w]);
    ends.push_back(r.server_rows[2]);
  }
  CHECK(ends[0] != ends[1]);
}

TEST_CASE("tables: geo_ps sends in a period every row that was touched, once, in messages of a few rows") {
  simulation_setup s;
  s.strategy = "geo_ps";
  s.parameters = {{"k", 3}};
  s.steps = 3;
  s.tensors.clear();
  s.table_rows = 100'000;
  s.table_row = 70'000; // three rows a message
  s.touched = 20;
  s.servers = 1;
  std::set<std::uint64_t> touched;
  for (std::uint64_t step = 0; step < s.steps; ++step)
    for (const std::uint64_t row : rows_touched(s, 0, step)) touched.insert(row);
  const std::uint64_t messages = (touched.size() + 2) / 3, words = 3;
  const auto r = simulate(plugins(), s);
  CHECK(r.counted[0].messages_sent == 2 * messages + 2); // the period's end, and goodbye
  CHECK(r.counted[0].bytes_sent == touched.size() * (8 + 70'000 * 4) + 8 * words * (messages + 2));
  CHECK(r.counted[1].bytes_sent == touched.size() * (8 + 70'000 * 4) + 8 * words * (messages + 1));
}

TEST_CASE("tables: geo_ps tells a worker at the end of a period what anybody has pushed since") {
  simulation_setup s;
  s.strategy = "geo_ps";
  s.parameters = {{"k", 3}};
  s.steps = 3;
  s.workers = 2;
  s.servers = 2;
  s.tensors.clear();
  s.table_rows = 1000;
  s.straggler_ns = 10'000'000; // worker 1 comes when worker 0 has left
  std::set<std::uint64_t> pushed;
  const auto r = simulate(plugins(), s);
  for (std::uint32_t w = 0; w < s.workers; ++w) {
    std::set<std::uint64_t> mine;
    for (std::uint64_t step = 0; step < s.steps; ++step)
      for (const std::uint64_t row : rows_touched(s, w, step)) mine.insert(row);
    pushed.insert(mine.begin(), mine.end());
    const std::uint64_t row = 8 + 4 * static_cast<std::uint64_t>(s.table_row);
    // A message from and to each of the two servers, whose header has three words, as have the period's end and
    // goodbye.
    CHECK(r.counted[w].messages_sent == 2 * 2 + 2 + 2);
    CHECK(r.counted[w].bytes_sent == mine.size() * row + 24 * (2 + 2 + 2));
    CHECK(r.counted[w].messages_received == 2 * 2 + 2);
    CHECK(r.counted[w].bytes_received == pushed.size() * row + 24 * (2 + 2));
  }
}

TEST_CASE("geo_ps ends with one set of weights for all, whatever the ranks, the network and the period") {
  for (const int k : {1, 2, 3, 400})
    everywhere("geo_ps", {{"bucket", 256}, {"k", k}}, [&](const simulation_setup& s) {
      CAPTURE(k);
      if (k != 2 && s.workers > 3) return; // the other cases hardly differ
      const auto r = simulate(plugins(), s);
      replicas_identical(r);
      if (s.workers == 1) weights_are(r, train_serially(s));
    });
}

TEST_CASE("geo_ps: k batches, one push of B bytes and one answer") {
  for (std::uint64_t servers = 1; servers <= 3; ++servers)
    for (const std::uint64_t steps : {6, 7}) { // 7: one batch beyond the last push, pushed at the end
      simulation_setup s;
      s.strategy = "geo_ps";
      s.parameters = {{"k", 3}};
      s.workers = 2;
      s.servers = static_cast<std::uint32_t>(servers);
      s.steps = steps;
      const std::uint64_t elements = 16 * servers * 5, bytes = elements * 4, pushes = (steps + 2) / 3;
      s.tensors = {static_cast<std::int64_t>(elements)};
      const auto r = simulate(plugins(), s);
      for (std::uint64_t w = 0; w < 2; ++w) {
        CHECK(r.counted[w].bytes_sent == pushes * bytes);
        CHECK(r.counted[w].bytes_received == (pushes + 1) * bytes);
        CHECK(r.counted[w].messages_sent == pushes * servers + servers);
      }
      for (std::uint64_t k = 0; k < servers; ++k) {
        CHECK(r.counted[2 + k].bytes_sent == (pushes + 1) * 2 * bytes / servers);
        CHECK(r.counted[2 + k].messages_sent == (pushes + 1) * 2);
      }
    }
}

TEST_CASE("geo_ps: workers at one pace that push together add up to local training, averaged") {
  simulation_setup s;
  s.strategy = "geo_ps";
  s.parameters = {{"k", 5}};
  s.workers = 1;
  s.servers = 2;
  s.steps = 10;
  weights_are(simulate(plugins(), s), train_locally(s, 5));
  s.steps = 5; // one period: whatever the order, the last weights hold all differences
  for (s.workers = 2; s.workers <= 6; ++s.workers) {
    s.straggler_ns = 10'000 * s.workers;
    weights_are(simulate(plugins(), s), train_locally(s, 5));
  }
}

TEST_CASE("local_sgd equals workers that train alone and average, whatever the ranks, the network and the period") {
  for (const std::uint64_t k : {1, 2, 5, 8})
    for (std::uint32_t workers = 1; workers <= 8; ++workers)
      for (const auto& network : networks()) {
        CAPTURE(k);
        CAPTURE(workers);
        CAPTURE(network.eager);
        CAPTURE(network.adds);
        simulation_setup s;
        s.strategy = "local_sgd";
        s.parameters = {{"k", k}, {"bucket", 256}};
        s.workers = workers;
        s.network = network;
        s.straggler_ns = workers % 3 ? 0 : 50'000;
        s.late_ns = workers % 2 ? 0 : 200'000;
        weights_are(simulate(plugins(), s), train_locally(s, k));
      }
}

TEST_CASE("local_sgd every step, without momentum, is synchronous training") {
  simulation_setup s;
  s.strategy = "local_sgd";
  s.parameters = {{"k", 1}};
  s.optimizer.plugin = "sgd";
  s.optimizer.momentum = 0;
  for (s.workers = 1; s.workers <= 5; ++s.workers) equals_serial(s, simulate(plugins(), s));
}

TEST_CASE("local_sgd: a ring's bytes every k steps") {
  for (std::uint64_t n = 2; n <= 5; ++n) {
    simulation_setup s;
    s.strategy = "local_sgd";
    s.parameters = {{"k", 4}};
    s.workers = static_cast<std::uint32_t>(n);
    s.steps = 8;
    s.tensors = {static_cast<std::int64_t>(16 * n * 3)};
    const std::uint64_t bytes = 16 * n * 3 * 4;
    for (const auto& c : simulate(plugins(), s).counted) {
      CHECK(c.messages_sent == 2 * 2 * (n - 1));
      CHECK(c.bytes_sent == 2 * 2 * (n - 1) * bytes / n);
    }
  }
}

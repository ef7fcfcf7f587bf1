// SPDX-License-Identifier: Apache-2.0
//
// Sparse tables of ghosts: row numbers have bytes, values have none. Messages must be those of a run with values.
#include "matrix.hpp"

#include <numeric>

using namespace regatta;
using namespace regatta::test;

namespace {

struct table_run {
  const char* strategy;
  std::map<std::string, nlohmann::json> parameters;
  std::uint32_t servers;
  bool adds_up; // the owners of rows add up gradients before they update: the update's time counts with ghosts only
};

const std::vector<table_run>& runs() {
  static const std::vector<table_run> all = {
      {"none", {}, 0, false},
      {"allreduce", {{"bucket", 256}, {"algorithm", "ring"}}, 0, true},
      {"sync_ps", {{"bucket", 256}}, 1, true},
      {"sync_ps", {{"bucket", 256}}, 3, true},
      {"async_ps", {{"bucket", 256}, {"bound", -1}}, 2, false},
      {"async_ps", {{"bucket", 256}, {"bound", 1}}, 3, false},
      {"geo_ps", {{"bucket", 256}, {"k", 2}, {"merge", "add"}}, 2, false},
      {"geo_ps", {{"bucket", 256}, {"k", 3}, {"merge", "replace"}}, 3, false},
  };
  return all;
}

// Two tables of rows of 3 and 70,000 elements: geo_ps sends three of the second kind at once.
simulation_setup two_tables(const table_run& x, std::uint32_t workers) {
  simulation_setup s;
  s.strategy = x.strategy;
  s.parameters = x.parameters;
  s.workers = workers;
  s.servers = x.servers;
  s.steps = 4;
  s.ghosts = true;
  s.tables = {{100, 3, 20}, {1000, 70'000, 6}};
  s.touches = [](std::uint32_t worker, std::uint64_t step, std::uint32_t table, std::vector<std::uint64_t>& out) {
    out.resize(table ? 6 : worker + 1);
    std::iota(out.begin(), out.end(), step + 10 * worker);
  };
  return s;
}

} // namespace

TEST_CASE("ghosts with a sparse table exchange the messages of a run with values") {
  for (const table_run& x : runs())
    for (const std::uint32_t workers : {1, 2, 5})
      for (const bool dense : {true, false})
        for (const bool colocate : {false, true}) {
          if (colocate && !x.servers) continue;
          CAPTURE(x.strategy);
          CAPTURE(x.servers);
          CAPTURE(workers);
          CAPTURE(dense);
          CAPTURE(colocate);
          simulation_setup s;
          s.strategy = x.strategy;
          s.parameters = x.parameters;
          s.workers = workers;
          s.servers = x.servers;
          s.colocate = colocate;
          s.table_rows = 50;
          s.straggler_ns = 50'000;
          if (!dense) s.tensors.clear();
          if (x.adds_up) s.work.ns_per_byte = 0; // see there
          const simulation_result values = simulate(plugins(), s);
          s.ghosts = true;
          const simulation_result ghosts = simulate(plugins(), s);
          CHECK(ghosts.left_over == 0);
          CHECK(ghosts.virtual_ns == values.virtual_ns);
          REQUIRE(ghosts.counted.size() == values.counted.size());
          for (std::size_t r = 0; r < values.counted.size(); ++r) {
            CHECK(ghosts.counted[r].sent_to == values.counted[r].sent_to);
            CHECK(ghosts.counted[r].bytes_received == values.counted[r].bytes_received);
          }
        }
}

TEST_CASE("ghosts with several tables send the rows that were given, and no others") {
  for (const std::uint32_t servers : {1, 3}) {
    const auto bytes = [&](const char* strategy, std::uint32_t worker) {
      return simulate(plugins(), two_tables({strategy, {}, servers, false}, 3)).counted[worker].bytes_sent;
    };
    for (std::uint32_t w = 0; w < 3; ++w) {
      // A request's header is three words, goodbye is one; sums of dense gradients are the same in every step.
      const std::uint64_t rows = (w + 1) * (8 + 4 * 3) + 6 * (8 + 4 * 70'000), dense = 4 * (48 + 16 + 112 + 16);
      CHECK(bytes("sync_ps", w) == 4 * (rows + dense + servers * 3 * 8) + servers * 8);
    }
  }
}

TEST_CASE("the update of rows that waited takes time, each row once") {
  simulation_setup s = two_tables({"sync_ps", {}, 1, true}, 2);
  s.tensors.clear();
  s.steps = 1;
  s.touches = [](std::uint32_t, std::uint64_t, std::uint32_t table, std::vector<std::uint64_t>& out) {
    out.assign(table ? 1 : 0, 7); // both workers touch row 7 of the second table
  };
  const auto end = [&](double of_update) {
    s.work.of_kind = {{RG_OP_ROWS_APPLY, of_update}};
    return simulate(plugins(), s).virtual_ns;
  };
  CHECK(end(1) - end(0) == 70'000 * 4 * 5);
}

TEST_CASE("the computing of a model without dense tensors is that after the last one") {
  simulation_setup s = two_tables({"none", {}, 0, false}, 1);
  s.tensors.clear();
  s.compute = [](std::uint32_t, std::uint64_t, compute_times& out) {
    out.before = 100;
    out.after = 5000;
  };
  const simulation_result r = simulate(plugins(), s);
  for (const simulated_step& step : r.steps.at(0)) {
    CHECK(step.backward == step.forward);
    CHECK(step.computed - step.backward == 5000);
  }
}

TEST_CASE("tables of ghosts need ghosts and a function, and are not folded") {
  simulation_setup s = two_tables({"sync_ps", {}, 1, true}, 2);
  s.fold = folding::on;
  CHECK(simulate(plugins(), s).whole == "the model has sparse tables");
  s.ghosts = false;
  CHECK_THROWS_AS(simulate(plugins(), s), std::runtime_error);
  s.ghosts = true;
  s.touches = nullptr;
  CHECK_THROWS_AS(simulate(plugins(), s), std::runtime_error);
}

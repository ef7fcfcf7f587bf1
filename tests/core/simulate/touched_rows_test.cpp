// SPDX-License-Identifier: Apache-2.0
#include "simulate/touched_rows.hpp"

#include "base/failure.hpp"

#include <cmath>
#include <set>

#include <doctest/doctest.h>

using namespace regatta;

namespace {

const simulated_table table{"table", 100'000, 10, 26};

std::vector<std::uint64_t> rows_of(const simulation_setup& s, std::uint32_t worker, std::uint64_t step) {
  std::vector<std::uint64_t> rows;
  s.touches(worker, step, 0, rows);
  return rows;
}

} // namespace

TEST_CASE("uniform draws name as many different rows as the formula says") {
  for (const double rows : {10.0, 1000.0, 1e6})
    CHECK(different_rows(0, static_cast<std::uint64_t>(rows), 500) ==
          doctest::Approx(rows * (1 - std::pow(1 - 1 / rows, 500))).epsilon(0.001));
  CHECK(different_rows(1, 1, 500) == doctest::Approx(1));
}

TEST_CASE("an exponent is found from the rows that it names") {
  for (const double exponent : {0.3, 1.0, 1.7})
    CHECK(exponent_of(different_rows(exponent, 1'000'000, 26'000), 1'000'000, 26'000) ==
          doctest::Approx(exponent).epsilon(0.001));
}

TEST_CASE("a step draws the rows that the machine file has, others for each worker and step") {
  machine_file m;
  m.tables = {{"table", 100, 1200, {}, 0}};
  case_config c;
  c.data.source = "random";
  const row_draws d = draws_of(m, table, c);
  CHECK(d.draws == 26);
  CHECK(!d.assumed);
  simulation_setup s;
  set_tables(m, {{table}, true}, c, 100, s);
  REQUIRE(s.tables.size() == 1);
  CHECK(s.tables[0].most == 2600);
  CHECK(s.rows_in_place);
  double sum = 0;
  std::set<std::vector<std::uint64_t>> seen;
  for (std::uint32_t worker = 0; worker < 4; ++worker)
    for (std::uint64_t step = 0; step < 10; ++step) {
      const std::vector<std::uint64_t> rows = rows_of(s, worker, step);
      REQUIRE(!rows.empty());
      CHECK(std::ranges::adjacent_find(rows, std::greater_equal<>()) == rows.end());
      CHECK(rows.back() < table.rows);
      CHECK(rows == rows_of(s, worker, step));
      seen.insert(rows);
      sum += static_cast<double>(rows.size());
    }
  CHECK(seen.size() == 40);
  CHECK(sum / 40 == doctest::Approx(1200).epsilon(0.02));
  CHECK(row_bytes_of_step(m, {{table}, true}, c, 100) == doctest::Approx(1200 * 40).epsilon(0.001));
}

TEST_CASE("without a machine file's word the rows are those of generated data, else assumed") {
  case_config c;
  c.data.source = "random";
  c.data.zipf = 1.5;
  CHECK(draws_of({}, table, c).exponent == 1.5);
  CHECK(draws_of({}, {"small", 100, 10, 26}, c).exponent == 0); // classes are uniform
  c.data.source = "dataset";
  CHECK(draws_of({}, table, c).assumed);
  CHECK(draws_of({}, table, c).exponent == 1);
  machine_file m;
  m.tables = {{"table", 0, 0, 0.5, 3}};
  CHECK(draws_of(m, table, c).exponent == 0.5);
  CHECK(draws_of(m, table, c).draws == 3);
  m.tables = {{"table", 10, 261, {}, 0}};
  CHECK_THROWS_AS(draws_of(m, table, c), failure);
}

TEST_CASE("constant data touches the same rows in every step of a worker") {
  case_config c;
  c.data.source = "constant";
  simulation_setup s;
  set_tables({}, {{table}, false}, c, 10, s);
  CHECK(rows_of(s, 0, 0) == rows_of(s, 0, 7));
  CHECK(rows_of(s, 0, 0) != rows_of(s, 1, 0));
}

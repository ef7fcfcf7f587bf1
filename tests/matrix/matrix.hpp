// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of strategies under virtual time.
#pragma once

#include "simulator/formula_model.hpp"
#include "simulator/simulation.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

namespace regatta::test {

inline const registry& plugins() {
  static const registry r = registry({REGATTA_PLUGINS}).loading();
  return r;
}

// Eager and rendezvous, with and without a transport that adds.
inline std::vector<network_options> networks() {
  std::vector<network_options> all;
  for (const bool eager : {true, false})
    for (const bool adds : {true, false}) all.push_back({.eager = eager, .adds = adds});
  return all;
}

inline void replicas_identical(const simulation_result& r) {
  for (const auto& w : r.weights) REQUIRE(w == r.weights[0]);
  CHECK(r.left_over == 0);
}

inline void weights_are(const simulation_result& r, const std::vector<double>& expected, double epsilon = 1e-5) {
  REQUIRE(r.weights.size() > 0);
  for (std::size_t i = 0; i < r.weights[0].size(); ++i) {
    // fp32 against double over a few steps of unit gradients.
    REQUIRE(r.weights[0][i] == doctest::Approx(expected[i]).epsilon(epsilon));
  }
  replicas_identical(r);
}

inline void equals_serial(const simulation_setup& s, const simulation_result& r) {
  REQUIRE(r.weights.size() == s.workers);
  weights_are(r, train_serially(s));
}

using rows_of_table = std::map<std::uint64_t, std::vector<float>>;

// The rows of the table on all servers.
inline rows_of_table rows_of_servers(const simulation_result& r) {
  rows_of_table all;
  for (const auto& rows : r.server_rows) all.insert(rows.begin(), rows.end());
  return all;
}

// `rows` are those that were touched, as `expected` has them behind the arena.
inline void table_is(const simulation_setup& s, const rows_of_table& rows, const std::vector<double>& expected) {
  const auto row = static_cast<std::size_t>(s.table_row);
  std::set<std::uint64_t> touched;
  for (std::uint64_t step = 0; step < s.steps; ++step)
    for (std::uint32_t w = 0; w < s.workers; ++w)
      for (const std::uint64_t r : rows_touched(s, w, step)) touched.insert(r);
  REQUIRE(rows.size() == touched.size());
  for (const auto& [r, values] : rows) {
    REQUIRE(touched.count(r));
    for (std::size_t e = 0; e < row; ++e)
      REQUIRE(values[e] == doctest::Approx(expected[arena_elements(s) + r * row + e]).epsilon(1e-5));
  }
}
inline void table_equals_serial(const simulation_setup& s, const rows_of_table& rows) {
  table_is(s, rows, train_serially(s));
}

} // namespace regatta::test

// SPDX-License-Identifier: Apache-2.0
//
// What the tests of strategies under virtual time share.
#pragma once

#include "simulation/simulation.hpp"

#include <doctest/doctest.h>

namespace regatta::test {

inline const registry& plugins() {
  static const registry r({REGATTA_PLUGINS});
  return r;
}

// Eager and rendezvous, with and without a transport that adds.
inline std::vector<network_options> networks() {
  std::vector<network_options> all;
  for (const bool eager : {true, false})
    for (const bool adds : {true, false}) all.push_back({eager, adds, false, 1000, 1.0});
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

} // namespace regatta::test

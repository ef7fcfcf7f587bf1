// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measured_run.hpp"

#include <limits>

#include <doctest/doctest.h>

using namespace regatta;

TEST_CASE("a calibration measures three rounds, and up to nine until its figures are precise") {
  const auto rounds_until = [](int precise) {
    int begun = 0;
    for (calibration_rounds rounds; rounds.next(begun < precise ? 0.011 : 0.009);) {
      ++begun;
      CHECK(rounds.first() == (begun == 1));
    }
    return begun;
  };
  CHECK(rounds_until(0) == 3);
  CHECK(rounds_until(5) == 5);
  CHECK(rounds_until(std::numeric_limits<int>::max()) == 9);
}

TEST_CASE("the standard error of a mean") {
  CHECK(standard_error({}) == 0);
  CHECK(standard_error({7}) == 0);
  CHECK(standard_error({1, 3, 1, 3}) == doctest::Approx(0.57735)); // a deviation of 1.1547 over the root of four
}

// SPDX-License-Identifier: Apache-2.0
#include "simulate/measured_operations.hpp"

#include "simulate/machine_file.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace regatta;

TEST_CASE("operations of strategies are measured, each with a name that a machine file may have") {
  const std::map<std::string, double> all = measure_operations();
  for (const char* name : {"fill", "copy", "axpy", "scale", "clip", "accumulate", "convert", "top_k", "select", "gemm",
                           "gather_rows", "scatter_rows", "rows_add", "rows_write"}) {
    CAPTURE(name);
    REQUIRE(all.contains(name));
    CHECK(all.at(name) > 0);
    CHECK(all.at(name) < 1000); // a processor without caches would be faster
  }
  for (const auto& measured : all)
    CHECK(std::ranges::any_of(timed_operations(), [&](const auto& known) { return known.first == measured.first; }));
}

// SPDX-License-Identifier: Apache-2.0
#include "text/values.hpp"

#include "base/units.hpp"

#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

using namespace regatta;

TEST_CASE("values in their largest unit") {
  CHECK(exact_bytes(65536) == "64KiB");
  CHECK(exact_bytes(1000) == "1000B");
  CHECK(exact_bytes(0) == "0B");
  CHECK(exact_nanoseconds(50'000) == "50us");
  CHECK(exact_nanoseconds(1'500'000) == "1500us");
  CHECK(exact_nanoseconds(0) == "0ns");
  CHECK(exact_bits_per_second(1e10) == "10Gbit/s");
}

TEST_CASE("exactly printed values read back") {
  for (std::int64_t v : {0L, 1L, 7L, 1023L, 1024L, 1536L, 3'600'000'000'000L, (1L << 62), -65536L,
                         std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    CAPTURE(v);
    CHECK(parse_bytes(exact_bytes(v)) == v);
    CHECK(parse_nanoseconds(exact_nanoseconds(v)) == v);
  }
  for (double v : {0.0, 1.0, 1.1e9, 123456789.0, 0.1, 1e10, 3.3e12, 1e300, 4525946850.6930046, 1619714922391.4028,
                   406879.39448479144, 16.846084803134868}) {
    CAPTURE(v);
    CHECK(parse_bits_per_second(exact_bits_per_second(v)) == v);
  }
}

TEST_CASE("ranges of numbers") {
  const auto ranges = [](const std::vector<std::uint32_t>& numbers) { return ranges_of(numbers); };
  CHECK(ranges({}) == "");
  CHECK(ranges({6, 7}) == "6, 7");
  CHECK(ranges({0, 3, 4, 5, 8, 9}) == "0, 3 to 5, 8, 9");
}

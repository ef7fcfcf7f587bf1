// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <cstdint>
#include <limits>

#include <doctest/doctest.h>

using namespace regatta;

TEST_CASE("sizes") {
  CHECK(parse_bytes("64KiB") == 65536);
  CHECK(parse_bytes("64 KiB") == 65536);
  CHECK(parse_bytes("1.5MiB") == 1572864);
  CHECK(parse_bytes("2GB") == 2'000'000'000);
  CHECK(parse_bytes("0B") == 0);
  CHECK(parse_bytes("9223372036854775807B") == std::numeric_limits<std::int64_t>::max());
  for (const char* bad : {"", "64", "KiB", "64kib", "64  KiB", "1.5B", "64KiB ", " 64KiB", "9223372036854775808B",
                          "1e30GiB", "infB", "nanB", "64us", "0x10B", "--1B"}) {
    CAPTURE(bad);
    CHECK(!parse_bytes(bad));
  }
  CHECK(exact_bytes(65536) == "64KiB");
  CHECK(exact_bytes(1000) == "1000B");
  CHECK(exact_bytes(0) == "0B");
}

TEST_CASE("times") {
  CHECK(parse_nanoseconds("50us") == 50'000);
  CHECK(parse_nanoseconds("0.1us") == 100);
  CHECK(parse_nanoseconds("1min") == 60'000'000'000);
  CHECK(!parse_nanoseconds("0.1ns"));
  CHECK(!parse_nanoseconds("5m"));
  CHECK(exact_nanoseconds(50'000) == "50us");
  CHECK(exact_nanoseconds(1'500'000) == "1500us");
  CHECK(exact_nanoseconds(0) == "0ns");
}

TEST_CASE("rates") {
  CHECK(parse_bits_per_second("10Gbit/s") == 1e10);
  CHECK(parse_bits_per_second("1.25 GB/s") == 1e10);
  CHECK(!parse_bits_per_second("10Gbit"));
  CHECK(!parse_bits_per_second("1e5000bit/s"));
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

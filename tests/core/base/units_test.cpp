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
}

TEST_CASE("times") {
  CHECK(parse_nanoseconds("50us") == 50'000);
  CHECK(parse_nanoseconds("0.1us") == 100);
  CHECK(parse_nanoseconds("1min") == 60'000'000'000);
  CHECK(!parse_nanoseconds("0.1ns"));
  CHECK(!parse_nanoseconds("5m"));
}

TEST_CASE("rates") {
  CHECK(parse_bits_per_second("10Gbit/s") == 1e10);
  CHECK(parse_bits_per_second("1.25 GB/s") == 1e10);
  CHECK(!parse_bits_per_second("10Gbit"));
  CHECK(!parse_bits_per_second("1e5000bit/s"));
}

// SPDX-License-Identifier: Apache-2.0
#include "report/rounded.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace regatta;

TEST_CASE("bytes and seconds in tables") {
  CHECK(human_bytes(61'018'408) == "61.0 MB");
  CHECK(human_bytes(12) == "12 B");
  CHECK(human_bytes(999'900) == "1.00 MB");
  CHECK(human_seconds(0.00125) == "1.25 ms");
  CHECK(human_seconds(100e-6) == "100.0 us");
  CHECK(human_seconds(3661) == "1:01:01 h");
  CHECK(human_seconds(-700) == "-0:11:40 h");
  CHECK(human_seconds(std::numeric_limits<double>::infinity()) == "inf s");
  CHECK(human_seconds(1e20).ends_with(" s")); // more hours than an integer holds
}

// SPDX-License-Identifier: Apache-2.0
#include "layout.h"

#include <doctest/doctest.h>

#include <iterator>

extern "C" const size_t layout_in_c[];
extern "C" const size_t layout_length_in_c;

TEST_CASE("C99 and C++ agree on the layout of the interface") {
  const size_t layout[] = LAYOUT;
  REQUIRE(std::size(layout) == layout_length_in_c);
  for (size_t i = 0; i < std::size(layout); ++i) {
    CAPTURE(i);
    CHECK(layout[i] == layout_in_c[i]);
  }
}

TEST_CASE("what is said to have a fixed size has it") {
  CHECK(sizeof(rg_value) == 56);
  CHECK(sizeof(rg_buffer) == 24);
  CHECK(sizeof(rg_completion) == 40);
  CHECK(sizeof(rg_blob) == 16);
  CHECK(sizeof(rg_op) == 24);
}

// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt itself accepts the descriptors of GEMMs. Which algorithms it has for them can be asked on a GPU only.
#include "lib/gemm.hpp"

#include <doctest/doctest.h>

using namespace cudnn;

TEST_CASE("cuBLASLt takes the descriptions of products") {
  REQUIRE(blas().version() >= 120000);
  for (const precision& p :
       {precision{}, precision{.tf32 = true}, precision{.type = number::bf16}, precision{.type = number::f16}})
    for (const beside b : {beside::nothing, beside::bias, beside::relu, beside::bias_relu, beside::column_sums,
                           beside::relu_mask, beside::bias_relu_mask, beside::through_relu}) {
      const product_shape ahead = {.m = 6, .n = 5, .k = 4, .b_across = true, .a_row = 4, .b_row = 4, .c_row = 5};
      const product_description d = describe(p, ahead, p.type, b, 1 << 20);
      CHECK(d.does == b);
      const float vector = 0;
      const std::byte mask{};
      CHECK_NOTHROW(d.point(&vector, &mask));
    }
}

// SPDX-License-Identifier: Apache-2.0
//
// cuBLASLt itself accepts the descriptors of GEMMs. Which algorithms it has for them can be asked on a GPU only.
#include "lib/gemm.hpp"

#include <doctest/doctest.h>

using namespace cudnn;

TEST_CASE("cuBLASLt takes the descriptions of GEMMs") {
  REQUIRE(blas().version() >= 120000);
  for (const precision& p :
       {precision{}, precision{.tf32 = true}, precision{.type = dtype::bf16}, precision{.type = dtype::f16}})
    for (const gemm_epilogue b : {gemm_epilogue::none, gemm_epilogue::bias, gemm_epilogue::relu,
                                  gemm_epilogue::bias_relu, gemm_epilogue::column_sums}) {
      const gemm_shape ahead = {.m = 6, .n = 5, .k = 4, .b_across = true, .a_row = 4, .b_row = 4, .c_row = 5};
      const gemm_description d = describe(p, ahead, p.type, b, 1 << 20);
      CHECK(d.does == b);
      const float vector = 0;
      CHECK_NOTHROW(d.point(&vector));
    }
}

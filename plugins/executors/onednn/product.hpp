// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices by oneDNN's matmul primitive, which multiplies in bf16, too, and adds the bias while the result is
// in registers; or, of floats, by dnnl_sgemm. Which is faster depends on the shape: on a Zen 4 core 400 x 400 x 1000 runs
// at 115 GFLOP/s against 105, 768 x 768 x 1024 with the first transposed at 102 against 112.
#pragma once

#include "program.hpp"

namespace onednn {

// How a matrix lies in memory: rows, `stride` elements apart, or, transposed, columns.
struct matrix {
  std::size_t rows, columns, stride;
  bool transposed = false;

  matrix across() const { return {columns, rows, stride, !transposed}; }
};

struct product_options {
  bool half = false;        // a and b are bf16, not floats; sums are of floats all the same
  bool half_result = false; // c is bf16
  bool accumulate = false;  // c += a b
  bool bias = false;        // adds a row of floats to every row of c
  bool gemm = false;        // by dnnl_sgemm; not with half
};

// c = a b.
class product {
public:
  product() = default;
  product(const device& dev, const matrix& a, const matrix& b, const matrix& c, const product_options& o);
  const std::string& runs() const { return runs_; } // "matmul brg:avx512_core_bf16"
  std::size_t scratch_bytes() const { return scratch_; }
  // `scratch` is 64-byte aligned. By one thread at a time.
  void run(const device& dev, const void* a, const void* b, void* c, const float* bias, std::byte* scratch);

private:
  void run_gemm(const device& dev, const float* a, const float* b, float* c, const float* bias) const;

  matrix shape_a_{}, shape_b_{}, shape_c_{};
  product_options options_;
  dnnl::primitive primitive_; // of matmul
  dnnl::memory a_, b_, c_, bias_, scratchpad_;
  std::string runs_;
  std::size_t scratch_ = 0;
};

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices by oneDNN's matmul primitive. For many shapes it has faster code than dnnl_sgemm (400 x 400 x
// 1000 on a Zen 4 core: 115 GFLOP/s against 105), it adds the bias while the result is in registers, and it multiplies
// in bf16.
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
};

// c = a b.
class product {
public:
  product() = default;
  product(const device& dev, const matrix& a, const matrix& b, const matrix& c, const product_options& o);
  explicit operator bool() const { return static_cast<bool>(primitive_); }
  const std::string& runs() const { return runs_; }
  std::size_t scratch_bytes() const { return scratch_; }
  // `scratch` is 64-byte aligned. By one thread at a time.
  void run(const device& dev, const void* a, const void* b, void* c, const float* bias, std::byte* scratch);

private:
  dnnl::primitive primitive_;
  dnnl::memory a_, b_, c_, bias_, scratchpad_;
  std::string runs_;
  std::size_t scratch_ = 0;
};

} // namespace onednn

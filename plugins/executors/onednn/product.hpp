// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices in bf16 with sums of floats.
#pragma once

#include "program.hpp"

namespace onednn {

// How a matrix lies in memory: rows, `stride` elements apart, or, transposed, columns.
struct matrix {
  std::size_t rows, columns, stride;
  bool transposed = false;
};

// c = a b, or c += a b. a and b are bf16, c is of floats or bf16; `bias` adds a row of floats to every row of c.
class half_product {
public:
  half_product() = default;
  half_product(const device& dev, const matrix& a, const matrix& b, const matrix& c, bool c_half, bool accumulate,
               bool bias);
  explicit operator bool() const { return static_cast<bool>(primitive_); }
  const std::string& runs() const { return runs_; }
  std::size_t scratch_bytes() const { return scratch_; } // 64-byte aligned, as all three
  void run(const device& dev, const bf16* a, const bf16* b, void* c, const float* bias, std::byte* scratch);

private:
  dnnl::primitive primitive_;
  dnnl::memory a_, b_, c_, bias_, scratchpad_;
  std::string runs_;
  std::size_t scratch_ = 0;
};

} // namespace onednn

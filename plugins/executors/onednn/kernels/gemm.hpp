// SPDX-License-Identifier: Apache-2.0
//
// GEMMs by oneDNN's matmul primitive, which also multiplies bf16 and adds the bias in its epilogue; or, for fp32, by
// dnnl_sgemm. The faster one depends on the shape: on a Zen 4 core matmul runs 400 x 400 x 1000 at 115 GFLOP/s and
// dnnl_sgemm at 105; 768 x 768 x 1024 with the first matrix transposed, at 102 and 112.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// A matrix with this number of rows and columns, and how it lies in memory: each row is contiguous, and rows are
// `stride` elements apart; if `transposed`, this holds for columns instead.
struct matrix {
  std::size_t rows, columns, stride;
  bool transposed = false;

  // Returns the transposed matrix in the same memory.
  matrix across() const { return {columns, rows, stride, !transposed}; }
};

struct gemm_options {
  bool half = false;        // a and b are bf16; sums are fp32
  bool half_result = false; // c is bf16
  bool accumulate = false;  // c += a b
  bool bias = false;        // adds a row of fp32 to every row of c
  bool sgemm = false;       // uses dnnl_sgemm; requires a, b and c in fp32, and c not transposed
};

// The GEMM c = a b.
class gemm {
public:
  gemm() = default; // must be assigned to before run()
  // Builds the kernel. In fp32 it uses dnnl_sgemm if o.sgemm is set, or if matmul would misread an operand
  // (primitives.hpp). Throws dnnl::error if oneDNN has no kernel, or if only dnnl_sgemm is right and c is transposed.
  gemm(const device& dev, const matrix& a, const matrix& b, const matrix& c, const gemm_options& o);
  const std::string& runs() const { return runs_; } // algorithm and implementation, "matmul brg:avx512_core_bf16"
  std::size_t scratch_bytes() const { return scratch_; }
  // Computes c, with the device of the constructor. `bias` has a number per column of c, and is null without o.bias.
  // Requires `scratch` of scratch_bytes(), aligned to 64 bytes. One thread at a time may call it. Throws dnnl::error.
  void run(const device& dev, const void* a, const void* b, void* c, const float* bias, std::byte* scratch);

private:
  void run_sgemm(const device& dev, const float* a, const float* b, float* c, const float* bias) const;

  matrix shape_a_{}, shape_b_{}, shape_c_{};
  gemm_options options_;
  dnnl::primitive primitive_; // of matmul
  dnnl::memory a_, b_, c_, bias_, scratchpad_;
  std::string runs_;
  std::size_t scratch_ = 0;
};

// c = a b + beta c with c [m,n], a [m,k] and b [k,n], row-major. `ta` and `tb` are 'N', or 'T' if the matrix is stored
// transposed; lda, ldb and ldc are the elements from row to row in memory. Runs on the threads of the calling thread's
// OpenMP setting. Throws dnnl::error. dnnl_sgemm runs oneDNN's JIT-compiled code for every shape.
inline void sgemm(char ta, char tb, std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t lda,
                  const float* b, std::size_t ldb, float beta, float* c, std::size_t ldc) {
  const auto i = [](std::size_t v) { return static_cast<dnnl_dim_t>(v); };
  dnnl::error::wrap_c_api(dnnl_sgemm(ta, tb, i(m), i(n), i(k), 1, a, i(lda), b, i(ldb), beta, c, i(ldc)),
                          "a GEMM could not be run");
}

} // namespace onednn

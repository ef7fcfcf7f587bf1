// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>

namespace onednn {

// c = a b + beta c with c [m,n], a [m,k] and b [k,n], row-major. `ta` and `tb` are 'N', or 'T' if the matrix is stored
// transposed; lda, ldb and ldc are the elements from row to row in memory. Runs on the threads of the calling thread's
// OpenMP setting. Throws dnnl::error. dnnl_sgemm runs oneDNN's JIT-compiled code for every shape.
inline void gemm(char ta, char tb, std::size_t m, std::size_t n, std::size_t k, const float* a, std::size_t lda,
                 const float* b, std::size_t ldb, float beta, float* c, std::size_t ldc) {
  const auto i = [](std::size_t v) { return static_cast<dnnl_dim_t>(v); };
  dnnl::error::wrap_c_api(dnnl_sgemm(ta, tb, i(m), i(n), i(k), 1, a, i(lda), b, i(ldb), beta, c, i(ldc)),
                          "a matrix product could not be run");
}

} // namespace onednn

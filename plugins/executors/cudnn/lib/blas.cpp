// SPDX-License-Identifier: Apache-2.0
#include "lib/blas.hpp"

#include "runtime/device.hpp"

#include <string>

namespace cudnn {
namespace {

constexpr float one = 1, zero = 0;

cublasComputeType_t computing(const precision& p) {
  if (p.type != dtype::f32) return CUBLAS_COMPUTE_32F;
  return p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC;
}

} // namespace

cudaDataType_t cuda_type(dtype n) {
  return n == dtype::f32 ? CUDA_R_32F : n == dtype::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

void check(cublasStatus_t s, const char* what) {
  if (s == CUBLAS_STATUS_SUCCESS) return;
  throw rg::error(RG_E_DEVICE, std::string("cuBLAS, ") + what + ": " + blas().text(s));
}

// cuBLAS is column-major: our row-major [m, n] is its [n, m], so b is its first operand.
void multiply_batched(const device& d, const gemm_shape& p, const void* const* a, const void* const* b, dtype to,
                      void* const* c, int count, bool add, const char* name) {
  const cudaDataType_t type = cuda_type(d.computes.type);
  check(blas().gemm_batched(d.cublas, p.b_across ? CUBLAS_OP_T : CUBLAS_OP_N, p.a_across ? CUBLAS_OP_T : CUBLAS_OP_N,
                            p.n, p.m, p.k, &one, b, type, p.b_row, a, type, p.a_row, add ? &one : &zero, c,
                            cuda_type(to), p.c_row, count, computing(d.computes), CUBLAS_GEMM_DEFAULT),
        name);
}

} // namespace cudnn

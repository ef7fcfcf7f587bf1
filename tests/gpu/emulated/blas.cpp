// SPDX-License-Identifier: Apache-2.0
//
// cuBLAS's products as plain loops, column-major as it has them.
#include "streams.hpp"

#include <blas.hpp>

struct cublasContext {
  cudaStream_t stream;
};

namespace {

float load(const void* p, cudaDataType_t t, std::size_t i) {
  if (t == CUDA_R_32F) return static_cast<const float*>(p)[i];
  if (t == CUDA_R_16F) return __half2float(static_cast<const __half*>(p)[i]);
  return __bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]);
}
void store(void* p, cudaDataType_t t, std::size_t i, float x) {
  if (t == CUDA_R_32F)
    static_cast<float*>(p)[i] = x;
  else if (t == CUDA_R_16F)
    static_cast<__half*>(p)[i] = __float2half_rn(x);
  else
    static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16_rn(x);
}

struct operand {
  const void* at;
  cudaDataType_t type;
  std::size_t row, column; // elements between them
  float operator()(int r, int c) const {
    return load(at, type, static_cast<std::size_t>(r) * row + static_cast<std::size_t>(c) * column);
  }
};
operand read(const void* at, cudaDataType_t type, cublasOperation_t o, int ld) {
  const auto apart = static_cast<std::size_t>(ld);
  return o == CUBLAS_OP_N ? operand{at, type, 1, apart} : operand{at, type, apart, 1};
}

void product(const operand& a, const operand& b, int m, int n, int k, float beta, void* c, cudaDataType_t type,
             int ld) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a(i, l) * b(l, j);
      const std::size_t at = static_cast<std::size_t>(j) * static_cast<std::size_t>(ld) + static_cast<std::size_t>(i);
      store(c, type, at, beta != 0 ? sum + beta * load(c, type, at) : sum);
    }
}

} // namespace

namespace cudnn {

const blas_functions& blas() {
  static const blas_functions functions = {
      .create = [](cublasHandle_t* h) { return *h = new cublasContext{}, CUBLAS_STATUS_SUCCESS; },
      .destroy = [](cublasHandle_t h) { return delete h, CUBLAS_STATUS_SUCCESS; },
      .set_stream = [](cublasHandle_t h, cudaStream_t s) { return h->stream = s, CUBLAS_STATUS_SUCCESS; },
      .set_workspace = [](cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; },
      .gemm =
          [](cublasHandle_t h, cublasOperation_t oa, cublasOperation_t ob, int m, int n, int k, const void*,
             const void* a, cudaDataType_t ta, int lda, const void* b, cudaDataType_t tb, int ldb, const void* beta,
             void* c, cudaDataType_t tc, int ldc, cublasComputeType_t, cublasGemmAlgo_t) {
            later(h->stream, [=, scale = *static_cast<const float*>(beta)] {
              product(read(a, ta, oa, lda), read(b, tb, ob, ldb), m, n, k, scale, c, tc, ldc);
            });
            return CUBLAS_STATUS_SUCCESS;
          },
      .gemm_batched =
          [](cublasHandle_t h, cublasOperation_t oa, cublasOperation_t ob, int m, int n, int k, const void*,
             const void* const* a, cudaDataType_t ta, int lda, const void* const* b, cudaDataType_t tb, int ldb,
             const void* beta, void* const* c, cudaDataType_t tc, int ldc, int count, cublasComputeType_t,
             cublasGemmAlgo_t) {
            later(h->stream, [=, scale = *static_cast<const float*>(beta)] {
              for (int i = 0; i < count; ++i)
                product(read(a[i], ta, oa, lda), read(b[i], tb, ob, ldb), m, n, k, scale, c[i], tc, ldc);
            });
            return CUBLAS_STATUS_SUCCESS;
          },
      .text = [](cublasStatus_t) { return "an error"; },
  };
  return functions;
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices, by cuBLAS; see lazy_library.hpp.
#pragma once

#include "numbers.hpp"

#include <cublas_v2.h>

namespace cudnn {

struct blas_functions {
  decltype(&::cublasCreate) create;
  decltype(&::cublasDestroy) destroy;
  decltype(&::cublasSetStream) set_stream;
  decltype(&::cublasSetWorkspace) set_workspace;
  // cublasGemmEx and cublasGemmBatchedEx, which are overloaded.
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void* alpha,
                         const void* a, cudaDataType_t, int lda, const void* b, cudaDataType_t, int ldb,
                         const void* beta, void* c, cudaDataType_t, int ldc, cublasComputeType_t, cublasGemmAlgo_t);
  cublasStatus_t (*gemm_batched)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                                 const void* alpha, const void* const a[], cudaDataType_t, int lda,
                                 const void* const b[], cudaDataType_t, int ldb, const void* beta, void* const c[],
                                 cudaDataType_t, int ldc, int count, cublasComputeType_t, cublasGemmAlgo_t);
  decltype(&::cublasGetStatusString) text;
};

// Throws rg::error, RG_E_UNSUPPORTED where the library is not there.
const blas_functions& blas();

void check(cublasStatus_t s, const char* what);

class device;

// c [m, n] = a [m, k] b [k, n], or added to it; row-major, rows of a (as it lies), b and c `a_row`, `b_row` and `c_row`
// elements apart. `a_across`: a lies as [k, m]; likewise b.
struct product_shape {
  int m, n, k;
  bool a_across = false, b_across = false;
  int a_row, b_row, c_row;
};
// a and b are of the device's type, c of type `to`.
void multiply(const device& d, const product_shape& p, const void* a, const void* b, number to, void* c, bool add,
              const char* name);
// The same for `count` products; the arrays of pointers are in the device's memory.
void multiply_all(const device& d, const product_shape& p, const void* const* a, const void* const* b, number to,
                  void* const* c, int count, bool add, const char* name);

} // namespace cudnn

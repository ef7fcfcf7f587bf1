// SPDX-License-Identifier: Apache-2.0
//
// GEMMs by cuBLAS and cuBLASLt, which are loaded by the first call of blas(). gemm.hpp has single GEMMs.
#pragma once

#include "kernels/dtype.hpp"

#include <cublasLt.h>
#include <cublas_v2.h>

namespace cudnn {

// The functions of cuBLAS and cuBLASLt that are used, with the contracts of NVIDIA's manuals.
struct blas_functions {
  decltype(&::cublasCreate) create;
  decltype(&::cublasDestroy) destroy;
  decltype(&::cublasSetStream) set_stream;
  decltype(&::cublasSetWorkspace) set_workspace;
  // cublasGemmBatchedEx, which is overloaded
  cublasStatus_t (*gemm_batched)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k,
                                 const void* alpha, const void* const a[], cudaDataType_t, int lda,
                                 const void* const b[], cudaDataType_t, int ldb, const void* beta, void* const c[],
                                 cudaDataType_t, int ldc, int count, cublasComputeType_t, cublasGemmAlgo_t);
  // cublasGemmEx, which is overloaded
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void* alpha,
                         const void* a, cudaDataType_t, int lda, const void* b, cudaDataType_t, int ldb,
                         const void* beta, void* c, cudaDataType_t, int ldc, cublasComputeType_t, cublasGemmAlgo_t);
  decltype(&::cublasGetStatusString) text;

  decltype(&::cublasLtGetVersion) version;
  decltype(&::cublasLtMatmulDescCreate) describe;
  decltype(&::cublasLtMatmulDescSetAttribute) set_description;
  decltype(&::cublasLtMatmulDescDestroy) drop_description;
  decltype(&::cublasLtMatrixLayoutCreate) make_layout;
  decltype(&::cublasLtMatrixLayoutDestroy) drop_layout;
  decltype(&::cublasLtMatmulPreferenceCreate) prefer;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&::cublasLtMatmulPreferenceDestroy) drop_preference;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) candidates;
  decltype(&::cublasLtMatmul) multiply;
};

// [any] Returns the functions; the first call loads the libraries. Throws rg::error, RG_E_UNSUPPORTED, if a library or
// one of its functions is missing.
const blas_functions& blas();

// Throws rg::error, RG_E_DEVICE, unless s is CUBLAS_STATUS_SUCCESS: "cuBLAS, WHAT: ...".
void check(cublasStatus_t s, const char* what);
cudaDataType_t cuda_type(dtype n);

class device;

// The shape of a GEMM, c [m, n] = a [m, k] b [k, n]. Matrices are row-major; a_row, b_row and c_row are the
// distances between their stored rows, in elements. `a_across`: a is stored transposed, as [k, m]. `b_across`: b is
// stored as [n, k].
struct gemm_shape {
  int m, n, k;
  bool a_across = false, b_across = false;
  int a_row, b_row, c_row;
};
// Enqueues `count` GEMMs of this shape in the device's stream: c[i] = a[i] b[i], or with `add` c[i] += a[i] b[i]. The
// arrays of pointers are in device memory, as are the matrices, wherever they lie there. a and b have type
// d.computes.type, c has type `to`; sums are fp32. Throws rg::error, RG_E_DEVICE, whose text has `name`.
void multiply_batched(const device& d, const gemm_shape& p, const void* const* a, const void* const* b, dtype to,
                      void* const* c, int count, bool add, const char* name);

} // namespace cudnn

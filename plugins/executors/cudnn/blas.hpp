// SPDX-License-Identifier: Apache-2.0
//
// The functions of cuBLAS that are used here; see lazy_library.hpp.
#pragma once

#include <cublas_v2.h>

namespace cudnn {

struct blas_functions {
  decltype(&::cublasCreate) create;
  decltype(&::cublasDestroy) destroy;
  decltype(&::cublasSetStream) set_stream;
  decltype(&::cublasSetMathMode) set_math_mode;
  decltype(&::cublasSgemm) sgemm;
  decltype(&::cublasGetStatusString) text;
};

// Throws rg::error, RG_E_UNSUPPORTED where the library is not there.
const blas_functions& blas();

} // namespace cudnn

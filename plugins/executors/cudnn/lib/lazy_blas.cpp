// SPDX-License-Identifier: Apache-2.0
#include "../../common/lazy_library.hpp"
#include "lib/blas.hpp"

namespace cudnn {

#define REGATTA_TEXT(x) #x
#define REGATTA_NAME(x) REGATTA_TEXT(x) // cublasCreate is a macro for cublasCreate_v2

const blas_functions& blas() {
  static const blas_functions functions = [] {
    const cuda::lazy_library library(REGATTA_CUBLAS);
    blas_functions f{};
    library.find(f.create, REGATTA_NAME(cublasCreate));
    library.find(f.destroy, REGATTA_NAME(cublasDestroy));
    library.find(f.set_stream, REGATTA_NAME(cublasSetStream));
    library.find(f.set_workspace, REGATTA_NAME(cublasSetWorkspace));
    library.find(f.gemm_batched, REGATTA_NAME(cublasGemmBatchedEx));
    library.find(f.gemm, REGATTA_NAME(cublasGemmEx));
    library.find(f.text, REGATTA_NAME(cublasGetStatusString));
    const cuda::lazy_library light(REGATTA_CUBLASLT);
    light.find(f.version, "cublasLtGetVersion");
    light.find(f.describe, "cublasLtMatmulDescCreate");
    light.find(f.set_description, "cublasLtMatmulDescSetAttribute");
    light.find(f.drop_description, "cublasLtMatmulDescDestroy");
    light.find(f.make_layout, "cublasLtMatrixLayoutCreate");
    light.find(f.drop_layout, "cublasLtMatrixLayoutDestroy");
    light.find(f.prefer, "cublasLtMatmulPreferenceCreate");
    light.find(f.set_preference, "cublasLtMatmulPreferenceSetAttribute");
    light.find(f.drop_preference, "cublasLtMatmulPreferenceDestroy");
    light.find(f.candidates, "cublasLtMatmulAlgoGetHeuristic");
    light.find(f.multiply, "cublasLtMatmul");
    return f;
  }();
  return functions;
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// GEMMs of cuBLAS and cuBLASLt as plain loops, column-major.
#include "streams.hpp"

#include "lib/blas.hpp"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

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
  std::size_t row, column; // in elements
  float operator()(int r, int c) const {
    return load(at, type, static_cast<std::size_t>(r) * row + static_cast<std::size_t>(c) * column);
  }
};
operand read(const void* at, cudaDataType_t type, cublasOperation_t o, int ld) {
  const auto apart = static_cast<std::size_t>(ld);
  return o == CUBLAS_OP_N ? operand{at, type, 1, apart} : operand{at, type, apart, 1};
}

// An epilogue of cuBLASLt: returns the value to store from an unrounded sum and its row and column.
using finish = std::function<float(float, int, int)>;

// With REGATTA_EMULATED_FAULT=N in the environment, the N-th GEMM of cuBLASLt that is enqueued from then on has a NaN
// in its last element, or with REGATTA_EMULATED_ERROR=X the sum of X and the right number. The first variable counts
// down to 0.
bool is_faulty() {
  const char* const number = std::getenv("REGATTA_EMULATED_FAULT");
  const int left = number ? std::atoi(number) : 0;
  if (left > 0) setenv("REGATTA_EMULATED_FAULT", std::to_string(left - 1).c_str(), 1);
  return left == 1;
}

void product(
    const operand& a, const operand& b, int m, int n, int k, float alpha, float beta, void* c, cudaDataType_t type,
    int ld, const finish& end = [](float x, int, int) { return x; }) {
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a(i, l) * b(l, j);
      sum *= alpha;
      const std::size_t at = static_cast<std::size_t>(j) * static_cast<std::size_t>(ld) + static_cast<std::size_t>(i);
      store(c, type, at, end(beta != 0 ? sum + beta * load(c, type, at) : sum, i, j));
    }
}

// Our definition of cuBLASLt's opaque descriptors.
struct description {
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* vector = nullptr;
};
struct matrix {
  cudaDataType_t type;
  int rows, columns, ld;
};
description& of(cublasLtMatmulDesc_t d) {
  return *reinterpret_cast<description*>(d);
}
matrix& of(cublasLtMatrixLayout_t m) {
  return *reinterpret_cast<matrix*>(m);
}
operand read(const void* at, const matrix& m, cublasOperation_t o) {
  return read(at, m.type, o, m.ld);
}
bool has(cublasLtEpilogue_t whole, cublasLtEpilogue_t part) {
  return (static_cast<unsigned>(whole) & static_cast<unsigned>(part)) == static_cast<unsigned>(part);
}
cublasStatus_t set_description(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which, const void* value,
                               std::size_t bytes) {
  const auto take = [&](auto& into) {
    if (bytes != sizeof into) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&into, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (which) {
  case CUBLASLT_MATMUL_DESC_TRANSA: return take(of(d).a);
  case CUBLASLT_MATMUL_DESC_TRANSB: return take(of(d).b);
  case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(of(d).epilogue);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(of(d).vector);
  default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

// Returns two numbered algorithms with the same results. There is none that sums columns in fp16, so that the
// executor's fallback is tested.
cublasStatus_t candidates(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t,
                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int most,
                          cublasLtMatmulHeuristicResult_t* out, int* count) {
  *count = 0;
  if (of(d).epilogue == CUBLASLT_EPILOGUE_BGRADB && of(a).type == CUDA_R_16F) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (; *count < most && *count < 2; ++*count) {
    out[*count] = {};
    out[*count].algo.data[0] = 1 + static_cast<std::uint64_t>(*count);
    out[*count].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void*, const void* a, cublasLtMatrixLayout_t la,
                        const void* b, cublasLtMatrixLayout_t lb, const void* beta, const void* c,
                        cublasLtMatrixLayout_t, void* out, cublasLtMatrixLayout_t lo, const cublasLtMatmulAlgo_t* by,
                        void*, std::size_t, cudaStream_t s) {
  const description how = of(d);
  const matrix ma = of(la), mb = of(lb), mo = of(lo);
  const int k = how.a == CUBLAS_OP_N ? ma.columns : ma.rows;
  const bool fits = (how.a == CUBLAS_OP_N ? ma.rows : ma.columns) == mo.rows &&
                    (how.b == CUBLAS_OP_N ? mb.columns : mb.rows) == mo.columns &&
                    (how.b == CUBLAS_OP_N ? mb.rows : mb.columns) == k;
  if (!fits || c != out || !by || by->data[0] < 1 || by->data[0] > 2) return CUBLAS_STATUS_INVALID_VALUE;
  cudnn::later(s, [=, scale = *static_cast<const float*>(beta), faulty = is_faulty()] {
    const bool sums = how.epilogue == CUBLASLT_EPILOGUE_BGRADB;
    const operand right = read(b, mb, how.b);
    product(read(a, ma, how.a), right, mo.rows, mo.columns, k, 1, scale, out, mo.type, mo.ld,
            [&](float x, int row, int) {
              if (has(how.epilogue, CUBLASLT_EPILOGUE_BIAS))
                x += load(how.vector, mo.type, static_cast<std::size_t>(row));
              return has(how.epilogue, CUBLASLT_EPILOGUE_RELU) && x < 0 ? 0 : x;
            });
    for (int j = 0; sums && j < mo.columns; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += right(l, j);
      store(how.vector, mo.type, static_cast<std::size_t>(j), sum);
    }
    if (!faulty) return;
    const std::size_t last = static_cast<std::size_t>(mo.columns - 1) * static_cast<std::size_t>(mo.ld) +
                             static_cast<std::size_t>(mo.rows - 1);
    const char* const error = std::getenv("REGATTA_EMULATED_ERROR");
    store(out, mo.type, last, error ? load(out, mo.type, last) + std::strtof(error, nullptr) : NAN);
  });
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

namespace cudnn {

const blas_functions& blas() {
  static const blas_functions functions = {
      .create = [](cublasHandle_t* h) { return *h = new cublasContext{}, CUBLAS_STATUS_SUCCESS; },
      .destroy = [](cublasHandle_t h) { return delete h, CUBLAS_STATUS_SUCCESS; },
      .set_stream = [](cublasHandle_t h, cudaStream_t s) { return h->stream = s, CUBLAS_STATUS_SUCCESS; },
      .set_workspace = [](cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; },
      .gemm_batched =
          [](cublasHandle_t h, cublasOperation_t oa, cublasOperation_t ob, int m, int n, int k, const void*,
             const void* const* a, cudaDataType_t ta, int lda, const void* const* b, cudaDataType_t tb, int ldb,
             const void* beta, void* const* c, cudaDataType_t tc, int ldc, int count, cublasComputeType_t,
             cublasGemmAlgo_t) {
            later(h->stream, [=, scale = *static_cast<const float*>(beta)] {
              for (int i = 0; i < count; ++i)
                product(read(a[i], ta, oa, lda), read(b[i], tb, ob, ldb), m, n, k, 1, scale, c[i], tc, ldc);
            });
            return CUBLAS_STATUS_SUCCESS;
          },
      .gemm =
          [](cublasHandle_t h, cublasOperation_t oa, cublasOperation_t ob, int m, int n, int k, const void* alpha,
             const void* a, cudaDataType_t ta, int lda, const void* b, cudaDataType_t tb, int ldb, const void* beta,
             void* c, cudaDataType_t tc, int ldc, cublasComputeType_t, cublasGemmAlgo_t) {
            if (lda < (oa == CUBLAS_OP_N ? m : k) || ldb < (ob == CUBLAS_OP_N ? k : n) || ldc < m)
              return CUBLAS_STATUS_INVALID_VALUE;
            later(h->stream, [=, by = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta)] {
              product(read(a, ta, oa, lda), read(b, tb, ob, ldb), m, n, k, by, keep, c, tc, ldc);
            });
            return CUBLAS_STATUS_SUCCESS;
          },
      .text = [](cublasStatus_t) { return "an error"; },
      .version = [] { return std::size_t{0}; },
      .describe =
          [](cublasLtMatmulDesc_t* d, cublasComputeType_t, cudaDataType_t) {
            return *d = reinterpret_cast<cublasLtMatmulDesc_t>(new description), CUBLAS_STATUS_SUCCESS;
          },
      .set_description = &set_description,
      .drop_description = [](cublasLtMatmulDesc_t d) { return delete &of(d), CUBLAS_STATUS_SUCCESS; },
      .make_layout =
          [](cublasLtMatrixLayout_t* m, cudaDataType type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
            *m = reinterpret_cast<cublasLtMatrixLayout_t>(
                new matrix{type, static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(ld)});
            return CUBLAS_STATUS_SUCCESS;
          },
      .drop_layout = [](cublasLtMatrixLayout_t m) { return delete &of(m), CUBLAS_STATUS_SUCCESS; },
      .prefer = [](cublasLtMatmulPreference_t* p) { return *p = nullptr, CUBLAS_STATUS_SUCCESS; },
      .set_preference = [](cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*,
                           std::size_t) { return CUBLAS_STATUS_SUCCESS; },
      .drop_preference = [](cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; },
      .candidates = &candidates,
      .multiply = &multiply,
  };
  return functions;
}

} // namespace cudnn

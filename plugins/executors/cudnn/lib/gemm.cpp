// SPDX-License-Identifier: Apache-2.0
#include "lib/gemm.hpp"

#include "runtime/fences.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace cudnn {
namespace {

constexpr float one = 1, zero = 0;
constexpr std::uint32_t alignment = 64; // bytes; tensors in the engine's memory start at multiples of it
constexpr int most_candidates = 8;

cublasLtEpilogue_t epilogue_of(gemm_epilogue b) {
  switch (b) {
  case gemm_epilogue::none: return CUBLASLT_EPILOGUE_DEFAULT;
  case gemm_epilogue::bias: return CUBLASLT_EPILOGUE_BIAS;
  case gemm_epilogue::relu: return CUBLASLT_EPILOGUE_RELU;
  case gemm_epilogue::bias_relu: return CUBLASLT_EPILOGUE_RELU_BIAS;
  case gemm_epilogue::column_sums: return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

const char* text_of(gemm_epilogue b) {
  switch (b) {
  case gemm_epilogue::none: return "";
  case gemm_epilogue::bias: return " with bias";
  case gemm_epilogue::relu: return " with relu";
  case gemm_epilogue::bias_relu: return " with bias and relu";
  case gemm_epilogue::column_sums: return " with bias"; // the bias's gradient
  }
  return "";
}

// In fp32 without TF32, operands must not be rounded.
cublasComputeType_t computing(const precision& p) {
  return p.type == dtype::f32 && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

template <class T> void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which, const T& value) {
  check(blas().set_description(d, which, &value, sizeof value), "describing a GEMM");
}
template <class T> void set(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t which, const T& value) {
  check(blas().set_preference(p, which, &value, sizeof value), "limiting a GEMM");
}

// Returns a layout of a column-major matrix that the GEMM sees as [rows, columns]; `across`: it is stored as [columns,
// rows].
gemm_description::owned<cublasLtMatrixLayoutOpaque_t> layout(dtype n, bool across, int rows, int columns, int apart) {
  cublasLtMatrixLayout_t made = nullptr;
  check(blas().make_layout(&made, cuda_type(n), static_cast<std::uint64_t>(across ? columns : rows),
                           static_cast<std::uint64_t>(across ? rows : columns), apart),
        "describing a matrix");
  return {made, blas().drop_layout};
}

} // namespace

// cuBLAS is column-major: our row-major c [m, n] is its [n, m]. So b is its first operand, and a column of our c is a
// row of its c.
gemm_description describe(const precision& computes, const gemm_shape& p, dtype to, gemm_epilogue wanted,
                          std::size_t workspace) {
  gemm_description d;
  d.does = wanted;
  cublasLtMatmulDesc_t how = nullptr;
  check(blas().describe(&how, computing(computes), CUDA_R_32F), "describing a GEMM");
  d.how = {how, blas().drop_description};
  set(how, CUBLASLT_MATMUL_DESC_TRANSA, p.b_across ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(how, CUBLASLT_MATMUL_DESC_TRANSB, p.a_across ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(how, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(wanted));
  d.a = layout(computes.type, p.b_across, p.n, p.k, p.b_row);
  d.b = layout(computes.type, p.a_across, p.k, p.m, p.a_row);
  d.c = layout(to, false, p.n, p.m, p.c_row);
  cublasLtMatmulPreference_t limits = nullptr;
  check(blas().prefer(&limits), "limiting a GEMM");
  d.limits = {limits, blas().drop_preference};
  set(limits, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(limits, which, alignment);
  return d;
}

void gemm_description::point(const void* vector) const {
  if (does == gemm_epilogue::bias || does == gemm_epilogue::bias_relu || does == gemm_epilogue::column_sums)
    set(how.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
}

bool gemm::find_algorithms(const device& d, const gemm_shape& p, dtype to, gemm_epilogue wanted, const operands& o) {
  described_ = describe(d.computes, p, to, wanted, d.blas_workspace.bytes());
  described_.point(o.vector());
  std::array<cublasLtMatmulHeuristicResult_t, most_candidates> found{};
  int count = 0;
  const cublasStatus_t s =
      blas().candidates(d.cublas_lt(), described_.how.get(), described_.a.get(), described_.b.get(), described_.c.get(),
                        described_.c.get(), described_.limits.get(), most_candidates, found.data(), &count);
  candidates_.clear();
  if (s == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  if (s == CUBLAS_STATUS_INVALID_VALUE && wanted != gemm_epilogue::none)
    return false; // cuBLASLt may return this for an epilogue that it lacks
  check(s, "choosing an algorithm");
  for (const auto& result : std::span(found).first(static_cast<std::size_t>(count)))
    if (result.state == CUBLAS_STATUS_SUCCESS) candidates_.push_back(result.algo);
  return !candidates_.empty();
}

void gemm::plan(device& d, kernel_choices& c, const std::string& what, const gemm_shape& p, dtype to,
                gemm_epilogue wanted, const operands& o) {
  while (!find_algorithms(d, p, to, wanted, o)) {
    if (wanted == gemm_epilogue::none) throw rg::error(RG_E_UNSUPPORTED, what + ": cuBLASLt has no algorithm for it");
    wanted = gemm_epilogue::none;
  }
  const std::string name = name_ = what + text_of(does());
  const auto text = [](int n) { return ' ' + std::to_string(n); };
  const std::string key = "gemm" + text(static_cast<int>(d.computes.type)) + (d.computes.tf32 ? " tf32" : "") +
                          text(static_cast<int>(to)) + text(static_cast<int>(does())) + text(p.m) + text(p.n) +
                          text(p.k) + (p.a_across ? " across" : "") + text(p.a_row) + (p.b_across ? " across" : "") +
                          text(p.b_row) + text(p.c_row);
  const int known = c.known(name, key);
  const auto has = [&](int number) { return number >= 0 && static_cast<std::size_t>(number) < candidates_.size(); };
  if (c.given(name) && !has(known))
    throw rg::error(RG_E_UNSUPPORTED, name + ": cuBLASLt has no algorithm for it of number " + std::to_string(known));
  // The cache may name an algorithm that this version lacks.
  const std::size_t chosen = has(known) ? static_cast<std::size_t>(known) : c.times() ? fastest(d, o) : 0;
  algorithm_ = candidates_[chosen];
  c.choose(name, key, static_cast<int>(chosen));
  candidates_ = {};
}

std::size_t gemm::fastest(const device& d, const operands& o) const {
  std::size_t best = 0;
  double least = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const double taken = time_of(d.stream, [&] { launch(d, o, false, candidates_[i]); });
    if (i > 0 && taken >= least) continue;
    least = taken;
    best = i;
  }
  return best;
}

void gemm::launch(const device& d, const operands& o, bool add, const cublasLtMatmulAlgo_t& by) const {
  const gemm_description& p = described_;
  check(blas().multiply(d.cublas_lt(), p.how.get(), &one, o.b, p.a.get(), o.a, p.b.get(), add ? &one : &zero, o.c,
                        p.c.get(), o.c, p.c.get(), &by, d.blas_workspace.get<void>(), d.blas_workspace.bytes(),
                        d.stream),
        name_.c_str());
}

void gemm::compute(const device& d, const operands& o, bool add) const {
  described_.point(o.vector()); // bind() may have changed addresses since plan()
  launch(d, o, add, algorithm_);
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// A GEMM by cuBLASLt. Its algorithm is chosen once, when the shapes are known: the first of the heuristics or the
// fastest of the first few (kernel_choices.hpp).
#pragma once

#include "lib/blas.hpp"
#include "runtime/device.hpp"
#include "tuning/kernel_choices.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cudnn {

// The epilogue of a GEMM by cuBLASLt. bias: adds one value per column of c. relu: takes the ReLU of the result.
// column_sums: writes the sums of the columns of a as stored (transposed), which are the bias's gradient if a is the
// gradient of the result.
enum class gemm_epilogue : std::uint8_t { none, bias, relu, bias_relu, column_sums };

// The descriptors of a GEMM for cuBLASLt. Needs no GPU.
struct gemm_description {
  template <class T> using owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
  gemm_epilogue does = gemm_epilogue::none;
  owned<cublasLtMatmulDescOpaque_t> how{nullptr, nullptr};
  // In cuBLASLt's naming: its a is our b.
  owned<cublasLtMatrixLayoutOpaque_t> a{nullptr, nullptr}, b{nullptr, nullptr}, c{nullptr, nullptr};
  owned<cublasLtMatmulPreferenceOpaque_t> limits{nullptr, nullptr};

  // Sets the address of the bias that is read or the sums that are written; ignores it if `does` uses neither.
  void point(const void* vector) const;
};
// Describes a GEMM of operands of type computes.type, with result c of type `to` and epilogue `wanted`, by algorithms
// that need at most `workspace` bytes. Throws rg::error: RG_E_DEVICE if cuBLASLt rejects it, RG_E_UNSUPPORTED if
// cuBLASLt cannot be loaded.
gemm_description describe(const precision& computes, const gemm_shape& p, dtype to, gemm_epilogue wanted,
                          std::size_t workspace);

// One GEMM of an op.
class gemm {
public:
  // Addresses in device memory; a, b and c are multiples of 64 bytes. Those that the epilogue does not use may be null.
  struct operands {
    const void *a, *b; // of type device::computes.type
    void* c;
    const void* bias = nullptr; // [n]; bias and sums have the type of c
    void* sums = nullptr;       // [m]
    // Returns the sums, or the bias if there are none: no epilogue has both.
    const void* vector() const { return sums ? sums : bias; }
  };
  // Chooses the algorithm; called from op::attach(). `c` keeps the choice under a name made of `what` and the epilogue.
  // `o` are operands to time with, whose outputs may be overwritten. If cuBLASLt has no algorithm with the epilogue
  // `wanted`, chooses one without epilogue; does() tells which it is. Throws rg::error: RG_E_UNSUPPORTED if cuBLASLt
  // has no algorithm at all, or lacks the one that `c` holds from another process (rg_model_setup.kernel_choices);
  // RG_E_DEVICE if it reports another error.
  void plan(device& d, kernel_choices& c, const std::string& what, const gemm_shape& p, dtype to, gemm_epilogue wanted,
            const operands& o);
  // Returns the epilogue that compute() includes; the caller has to do the rest.
  gemm_epilogue does() const { return described_.does; }
  // Enqueues c = a b, or with `add` c += a b, with the epilogue does(); `add` does not hold for the sums, which are
  // overwritten. Addresses may differ from those of plan(). Throws rg::error, RG_E_DEVICE.
  void compute(const device& d, const operands& o, bool add) const;

private:
  // Sets candidates_ to the algorithms of cuBLASLt's heuristics, best first. Returns whether there is one.
  bool find_algorithms(const device& d, const gemm_shape& p, dtype to, gemm_epilogue wanted, const operands& o);
  // Enqueues the GEMM by this algorithm.
  void launch(const device& d, const operands& o, bool add, const cublasLtMatmulAlgo_t& by) const;
  // Times candidates_ and returns the index of the fastest one.
  std::size_t fastest(const device& d, const operands& o) const;

  std::string name_;
  gemm_description described_;
  std::vector<cublasLtMatmulAlgo_t> candidates_;
  cublasLtMatmulAlgo_t algorithm_{};
};

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// A GEMM by cuBLASLt. Its algorithm is chosen once, when the shapes are known: the first of the heuristics or the
// fastest of the first few (choices.hpp).
#pragma once

#include "lib/blas.hpp"
#include "tuning/kernel_choices.hpp"
#include "runtime/device.hpp"

#include <memory>
#include <string>
#include <vector>

namespace cudnn {

// The epilogue of a GEMM by cuBLASLt. bias: adds one value per column of c. relu: takes the ReLU of the result. *_mask:
// also writes a mask with one bit per element of c that is set where the ReLU let the element pass. through_relu: reads
// such a mask and sets the elements that did not pass to zero. column_sums: writes the sums of the columns of a as
// stored (transposed), which are the bias's gradient if a is the gradient of the result.
enum class beside : std::uint8_t {
  nothing,
  bias,
  relu,
  bias_relu,
  column_sums,
  relu_mask,
  bias_relu_mask,
  through_relu
};
// Returns whether the epilogue writes a mask.
constexpr bool makes_mask(beside b) {
  return b == beside::relu_mask || b == beside::bias_relu_mask;
}
// Returns the size of a mask: for each row of c, 16 bytes for every 128 columns or part of them.
constexpr std::size_t mask_bytes(std::size_t rows, std::size_t columns) {
  return rows * ((columns + 127) / 128) * 16;
}

// The descriptors of a GEMM for cuBLASLt. Needs no GPU.
struct product_description {
  template <class T> using owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
  beside does = beside::nothing;
  owned<cublasLtMatmulDescOpaque_t> how{nullptr, nullptr};
  // In cuBLASLt's naming: its a is our b.
  owned<cublasLtMatrixLayoutOpaque_t> a{nullptr, nullptr}, b{nullptr, nullptr}, c{nullptr, nullptr};
  owned<cublasLtMatmulPreferenceOpaque_t> limits{nullptr, nullptr};

  // Sets the addresses of the bias that is read or the sums that are written, and of the mask; ignores those that
  // `does` has no use for.
  void point(const void* vector, const void* mask) const;
};
// Describes a GEMM of operands of type computes.type, with result c of type `to` and epilogue `wanted`, by algorithms
// that need at most `workspace` bytes. Throws rg::error: RG_E_DEVICE if cuBLASLt rejects it, RG_E_UNSUPPORTED if
// cuBLASLt cannot be loaded.
product_description describe(const precision& computes, const product_shape& p, number to, beside wanted,
                             std::size_t workspace);

// One GEMM of an op.
class product {
public:
  // Addresses in device memory; a, b and c are multiples of 64 bytes. Those that the epilogue does not use may be null.
  struct operands {
    const void *a, *b; // of type device::computes.type
    void* c;
    const void* bias = nullptr; // [n]; bias and sums have the type of c
    void* sums = nullptr;       // [m]
    const void* mask = nullptr; // read or written, as the epilogue says
    // Returns the sums, or the bias if there are none: no epilogue has both.
    const void* vector() const { return sums ? sums : bias; }
  };
  // Chooses the algorithm, from op::attach(). `what` and the epilogue are its name in `c`. `o` stands for the operands
  // of compute(); timing may overwrite its outputs. If cuBLASLt has no algorithm with the epilogue `wanted`, tries it
  // without writing a mask, then the GEMM alone; does() tells which. Throws rg::error, RG_E_UNSUPPORTED, if there is no
  // algorithm at all, or not the one that another instance chose.
  void plan(device& d, choices& c, const std::string& what, const product_shape& p, number to, beside wanted,
            const operands& o);
  // Returns the epilogue that compute() includes; the caller has to do the rest.
  beside does() const { return described_.does; }
  // Enqueues c = a b, or with `add` c += a b, with the epilogue does(). Addresses may differ from those of plan().
  // Throws rg::error, RG_E_DEVICE.
  void compute(const device& d, const operands& o, bool add) const;

private:
  // Asks for algorithms. Returns whether there is one.
  bool ask(const device& d, const product_shape& p, number to, beside wanted, const operands& o);
  void launch(const device& d, const operands& o, bool add, const cublasLtMatmulAlgo_t& by) const;
  std::size_t fastest(const device& d, const operands& o) const;

  std::string name_;
  product_description described_;
  std::vector<cublasLtMatmulAlgo_t> candidates_;
  cublasLtMatmulAlgo_t algorithm_{};
};

} // namespace cudnn

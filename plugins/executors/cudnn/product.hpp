// SPDX-License-Identifier: Apache-2.0
//
// A product of matrices by cuBLASLt, planned once: which of its algorithms computes it is asked for when the shapes are
// known, the first that its heuristics name or the fastest of the first few by timing (choices.hpp).
#pragma once

#include "blas.hpp"
#include "choices.hpp"
#include "device.hpp"

#include <memory>
#include <string>
#include <vector>

namespace cudnn {

// What a product does beside: adds a bias, one number a column of c; takes the ReLU of what comes of that, and writes a
// mask, a bit for each of c's numbers, of what passed; makes zeros of what did not pass such a ReLU, whose mask it reads;
// or writes the sums of a's columns (a lies across then), which of a slope are the bias's gradient.
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
constexpr bool makes_mask(beside b) {
  return b == beside::relu_mask || b == beside::bias_relu_mask;
}
// The bits of one row of c lie in 16 bytes each 128.
constexpr std::size_t mask_bytes(std::size_t rows, std::size_t columns) {
  return rows * ((columns + 127) / 128) * 16;
}

// A product as cuBLASLt is told of it. Made without a GPU.
struct product_description {
  template <class T> using owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
  beside does = beside::nothing;
  owned<cublasLtMatmulDescOpaque_t> how{nullptr, nullptr};
  owned<cublasLtMatrixLayoutOpaque_t> a{nullptr, nullptr}, b{nullptr, nullptr}, c{nullptr, nullptr}; // as it calls them
  owned<cublasLtMatmulPreferenceOpaque_t> limits{nullptr, nullptr};

  // The bias that is read, or the sums that are written; and the mask.
  void point(const void* vector, const void* mask) const;
};
// `workspace`: bytes at most.
product_description describe(const precision& computes, const product_shape& p, number to, beside wanted,
                             std::size_t workspace);

class product {
public:
  struct operands {
    const void *a, *b; // of the device's type
    void* c;
    const void* bias = nullptr; // of c's type, as are the sums
    void* sums = nullptr;
    const void* mask = nullptr; // written where it is made
    const void* vector() const { return sums ? sums : bias; }
  };
  // `what` and what it does beside are its name in choices; `o` may be written to when algorithms are timed. Where
  // cuBLASLt cannot do what is wanted beside, it is planned without a mask, and then the product alone. Throws rg::error,
  // RG_E_UNSUPPORTED where it has no algorithm.
  void plan(device& d, choices& c, const std::string& what, const product_shape& p, number to, beside wanted,
            const operands& o);
  beside does() const { return described_.does; }
  // c = a b, or added to it, and what it does beside.
  void compute(const device& d, const operands& o, bool add) const;

private:
  // Whether there is any algorithm.
  bool ask(const device& d, const product_shape& p, number to, beside wanted, const operands& o);
  void launch(const device& d, const operands& o, bool add, const cublasLtMatmulAlgo_t& by) const;
  std::size_t fastest(const device& d, const operands& o) const;

  std::string name_;
  product_description described_;
  std::vector<cublasLtMatmulAlgo_t> candidates_;
  cublasLtMatmulAlgo_t algorithm_{};
};

} // namespace cudnn

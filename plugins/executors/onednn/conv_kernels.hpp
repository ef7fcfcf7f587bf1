// SPDX-License-Identifier: Apache-2.0
//
// Kernels for one direction of a convolution. All read and write the same layouts, so that one can replace another.
#pragma once

#include "program.hpp"

#include <optional>

namespace onednn {

enum class direction { forward, data, weights };
inline constexpr direction directions[] = {direction::forward, direction::data, direction::weights};
const char* name_of(direction d); // "forward", "data gradient", "weight gradient"

struct conv_shape {
  std::size_t channels, height, width;        // in
  std::size_t outputs, out_height, out_width; // out
  std::size_t kernel, stride, padding;
  bool plain_input = false; // x is row-major, as the batch supplies it
  bool bias = false;        // adds a bias in the forward pass and computes its gradient
  bool half = false;        // x (unless plain_input) and y are bf16 in memory; weights are multiplied as bf16

  double flops() const { // of one direction, for one sample
    return 2.0 * static_cast<double>(channels * outputs * kernel * kernel * out_height * out_width);
  }
  dnnl::memory::dims x(std::size_t n) const;
  dnnl::memory::dims w() const;
  dnnl::memory::dims y(std::size_t n) const;
};

// Operands of a kernel; the direction decides which of them it writes. `bias` may be null.
struct conv_data {
  void* x;
  float *w, *bias;
  void* y;
  bool accumulate; // direction::weights: add to w and bias
  std::byte* scratch;
};

class conv_kernel {
public:
  virtual ~conv_kernel() = default;
  virtual void run(const conv_data&) = 0; // [compute]
  virtual std::size_t scratch_bytes() const = 0;
  const std::string& algorithm() const { return algorithm_; } // "winograd": its name in picks
  const std::string& runs() const { return runs_; }           // "jit_wino_4x3:avx512_core": the implementation
  bool slow() const { return runs_.find("ref") != std::string::npos; }

protected:
  conv_kernel(std::string algorithm, std::string runs) : algorithm_(std::move(algorithm)), runs_(std::move(runs)) {}
  std::string algorithm_, runs_;
};

// Returns the layout of a convolution's weights in memory: one matrix per tap if x is blocked and mostly_padding()
// holds, else the layout that oneDNN's direct algorithm prefers. Depends on shape and instruction set only.
desc conv_weight_layout(const device& dev, const conv_shape& s);

// Returns whether at least half of all pairs of an output position and a tap fall on padding, so that skipping these
// pairs saves at least half of the work.
bool mostly_padding(const conv_shape& s);

// Returns all kernels for this convolution, at least one; RG_KERNELS_FIXED takes the first. Throws RG_E_UNSUPPORTED if
// there is none.
std::vector<std::unique_ptr<conv_kernel>> conv_candidates(const device& dev, const conv_shape& s, const desc& weights,
                                                          std::size_t batch, direction d);

// Convolution in bf16 as a GEMM with the unfolded input: one row per output position, with the inputs of all its taps
// (conv_matmul.cpp). Null if it does not support this shape.
std::unique_ptr<conv_kernel> make_matmul_kernel(const device& dev, const conv_shape& s, const desc& weights,
                                                std::size_t batch, direction d);

// Convolution as one GEMM per tap, over output positions at which the tap does not fall on padding (conv_taps.cpp).
std::unique_ptr<conv_kernel> make_taps_kernel(const device& dev, const conv_shape& s, std::size_t batch, direction d);

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
//
// Ways to run one direction of a convolution. All read and write the same layouts, so that any can stand for another.
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
  bool plain_input = false; // row-major, as the batch comes
  bool bias = false;        // added forward and differentiated here
  bool half = false;        // x (unless it is plain) and y are bf16 in memory, and so are the weights multiplied

  double flops() const { // of one direction, for one sample
    return 2.0 * static_cast<double>(channels * outputs * kernel * kernel * out_height * out_width);
  }
  dnnl::memory::dims x(std::size_t n) const;
  dnnl::memory::dims w() const;
  dnnl::memory::dims y(std::size_t n) const;
};

// What a kernel works on; which of them it writes depends on the direction. Bias may be null.
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
  const std::string& algorithm() const { return algorithm_; } // "winograd": what picks name
  const std::string& runs() const { return runs_; }           // "jit_wino_4x3:avx512_core": what that came to
  bool slow() const { return runs_.find("ref") != std::string::npos; }

protected:
  conv_kernel(std::string algorithm, std::string runs) : algorithm_(std::move(algorithm)), runs_(std::move(runs)) {}
  std::string algorithm_, runs_;
};

// The layout of a convolution's weights in memory: what the direct algorithm likes, or, where taps are multiplied one
// by one, a matrix a tap. Depends on shape and instruction set alone.
desc conv_weight_layout(const device& dev, const conv_shape& s);

// Whether most taps of most outputs fall on padding, so that multiplying only those that do not saves at least half.
bool mostly_padding(const conv_shape& s);

// Every way there is, the one that RG_KERNELS_FIXED takes first. Never empty.
std::vector<std::unique_ptr<conv_kernel>> conv_candidates(const device& dev, const conv_shape& s, const desc& weights,
                                                          std::size_t batch, direction d);

// Convolution in bf16 as a product of matrices, one of them the input unfolded: a row for every output position, with
// the inputs of all its taps (conv_matmul.cpp). Null: not for this shape.
std::unique_ptr<conv_kernel> make_matmul_kernel(const device& dev, const conv_shape& s, const desc& weights,
                                                std::size_t batch, direction d);

// Convolution as one matrix product for every tap and output position that does not fall on padding (conv_taps.cpp).
std::unique_ptr<conv_kernel> make_taps_kernel(const device& dev, const conv_shape& s, std::size_t batch, direction d);

} // namespace onednn

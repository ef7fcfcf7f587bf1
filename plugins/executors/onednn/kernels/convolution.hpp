// SPDX-License-Identifier: Apache-2.0
//
// Kernels for one direction of a convolution. All read and write the same layouts, so that one can replace another: x
// is blocked by channels, or row-major with plain_input; y is blocked; w has the layout that convolution_candidates()
// got.
#pragma once

#include "runtime/program.hpp"

#include <optional>

namespace onednn {

// The result of a kernel: y; the gradient of x; or the gradients of weights and bias.
enum class direction { forward, data, weights };
inline constexpr direction directions[] = {direction::forward, direction::data, direction::weights};
const char* name_of(direction d); // "forward", "data gradient", "weight gradient"

struct convolution_shape {
  std::size_t channels, height, width;        // in
  std::size_t outputs, out_height, out_width; // out
  std::size_t kernel, stride, padding;        // the same for height and width
  bool plain_input = false;                   // x is row-major, as the batch supplies it
  bool bias = false;                          // adds a bias in the forward pass and computes its gradient
  bool half = false; // x (unless plain_input) and y are bf16 in memory; all kernels but Winograd multiply in bf16

  double flops() const { // of one direction, for one sample
    return 2.0 * static_cast<double>(channels * outputs * kernel * kernel * out_height * out_width);
  }
  // oneDNN's dimensions for n samples: x and y as NCHW, w as OIHW.
  dnnl::memory::dims x(std::size_t n) const;
  dnnl::memory::dims w() const;
  dnnl::memory::dims y(std::size_t n) const;
};

// Operands of a kernel. direction::forward reads x, w and bias and writes y; direction::data reads w and y's gradient
// (in y) and writes x's gradient (in x); direction::weights reads x and y's gradient (in y) and writes the gradients of
// w and bias (in w and bias). `bias` is null if convolution_shape::bias is false; direction::data ignores it.
struct convolution_operands {
  void* x;
  float *w, *bias; // fp32 even with convolution_shape::half
  void* y;
  bool add_to_w, add_to_bias; // direction::weights: add to w and to bias instead of overwriting; others ignore both
  std::byte* scratch;         // scratch_bytes() of the kernel, aligned to 64 bytes
};

class convolution_kernel {
public:
  virtual ~convolution_kernel() = default;
  // [compute] Returns when the results are in memory. Throws dnnl::error. One thread at a time.
  virtual void run(const convolution_operands&) = 0;
  virtual std::size_t scratch_bytes() const = 0;
  const std::string& algorithm() const { return algorithm_; } // "winograd": its name in kernel choices
  const std::string& runs() const { return runs_; }           // "jit_wino_4x3:avx512_core": the implementation
  // Whether oneDNN's reference code runs, which is many times slower.
  bool slow() const { return runs_.find("ref") != std::string::npos; }

protected:
  convolution_kernel(std::string algorithm, std::string runs)
      : algorithm_(std::move(algorithm)), runs_(std::move(runs)) {}
  std::string algorithm_, runs_;
};

// Returns the layout of a convolution's weights in memory: [tap][input channel][output channel] if x is blocked and
// mostly_padding() holds, else the layout that oneDNN's direct algorithm prefers, or row-major if it has none. Depends
// on shape and instruction set only, so that all ranks of one kind of CPU agree. A tap is one position of the kernel
// window.
desc convolution_weight_layout(const device& dev, const convolution_shape& s);

// Returns whether at least half of all pairs of an output position and a tap fall on padding, so that skipping these
// pairs saves at least half of the work.
bool mostly_padding(const convolution_shape& s);

// Returns the kernels for this convolution and direction, at least one, with different runs(); RG_KERNELS_FIXED takes
// the first. Reference code is among them only if there is no other kernel. `weights` is the result of
// convolution_weight_layout(), or row-major, `batch` the samples of every run(). Kernels keep a reference to `dev`.
// Throws RG_E_UNSUPPORTED if there is none, and dnnl::error where oneDNN fails for another reason.
std::vector<std::unique_ptr<convolution_kernel>> convolution_candidates(const device& dev, const convolution_shape& s,
                                                                        const desc& weights, std::size_t batch,
                                                                        direction d);

// Convolution in bf16 as a GEMM with the unfolded input: one row per output position, with the inputs of all its taps
// (convolution_gemm.cpp). Requires s.half. Returns null if the input is row-major, or channels or outputs are no
// multiple of 16, or the CPU's channel block (dev.kernels->lanes) is not 16. Throws dnnl::error.
std::unique_ptr<convolution_kernel> make_matmul_kernel(const device& dev, const convolution_shape& s,
                                                       const desc& weights, std::size_t batch, direction d);

// Convolution in fp32 as one GEMM per tap, over output positions at which the tap does not fall on padding
// (convolution_taps.cpp). Requires weights as [tap][input channel][output channel], a blocked input and no s.half.
// Never null.
std::unique_ptr<convolution_kernel> make_taps_kernel(const device& dev, const convolution_shape& s, std::size_t batch,
                                                     direction d);

} // namespace onednn

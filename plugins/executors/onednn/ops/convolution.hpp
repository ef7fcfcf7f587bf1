// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/convolution.hpp"

namespace onednn {

// A two-dimensional convolution, plus a bias. prepare() chooses a kernel for each direction that is needed and logs a
// warning if it is oneDNN's reference code; it throws RG_E_UNSUPPORTED if there is no kernel. Requires in w->layout,
// before prepare(), the result of convolution_weight_layout() or, with device::row_major, the canonical layout. The
// output is blocked by channels.
class convolution final : public op {
public:
  // `bias` is null if there is none, or if the batch norm after this op takes it over. s.bias and s.half are
  // ignored: `bias` and the type of `out` decide. s.plain_input must equal in->plain.
  convolution(std::string name, value* in, value* out, const convolution_shape& s, weight* w, weight* bias,
              const device& dev);
  void prepare(const preparation&) override;
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  std::size_t scratch_bytes() const override;
  double flops() const override;
  void report(std::string& text) const override;

private:
  // Whether a pass needs this direction.
  bool wants(direction d) const { return d != direction::data || inputs_[0].from->needs_gradient; }
  std::unique_ptr<convolution_kernel> choose_kernel(const preparation& p, direction d) const;
  // Returns the operands of a kernel, with the device's scratch.
  convolution_operands data(void* x, const float* w, const float* bias, void* y) const;

  const device& dev_;
  convolution_shape shape_;
  weight *weight_, *bias_;
  std::unique_ptr<convolution_kernel> kernels_[3]; // by direction
};

} // namespace onednn

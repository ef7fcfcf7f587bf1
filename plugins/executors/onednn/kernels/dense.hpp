// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/gemm.hpp"

namespace onednn {

// y = x w^T + b for `rows` rows. w is [outputs, inputs], contiguous; weights, bias and their gradients are fp32.
struct dense_shape {
  std::size_t rows, inputs, outputs;
  // Elements from row to row of x and y, and of their gradients. Each holds rows * stride elements.
  std::size_t x_stride, y_stride;
  bool x_half = false, y_half = false; // x and y, and their gradients, are bf16 in memory
  bool bias = false;
  bool data_gradient = false; // the gradient of x is wanted
};

// The GEMMs of a dense layer, forward and backward; the caller computes the bias's gradient. If the device computes in
// bf16, fp32 operands are rounded to bf16 copies first: forward() copies w and x for both passes, weight_gradient()
// copies the gradient of y.
//
// Call prepare(), plan() and attach() once, in this order, from the op's functions of the same names; then the others.
// Gradients refer to the last forward(). All use the device's scratch, of which they need scratch_bytes().
class dense_gemms {
public:
  // Builds the GEMMs, and times alternatives in fp32 if p.choices does. `name` is the layer's; autotuning uses the
  // names "NAME forward", "NAME weight gradient" and "NAME data gradient". p.dev must outlive this object.
  void prepare(const preparation& p, const std::string& name, const dense_shape& s);
  void plan(memory_plan& m);
  void attach(const memory_plan& m);
  std::size_t scratch_bytes() const { return gemm_scratch_at_ + gemm_scratch_bytes_; }

  // y = x w^T, plus bias with dense_shape::bias; without it `bias` must be null.
  void forward(const void* x, const float* w, const float* bias, void* y);
  // dw = dy^T x; with `add`, dw += dy^T x. x and its contents must be those passed to forward().
  void weight_gradient(const void* x, const void* dy, float* dw, bool add);
  // dx = dy w; with `add`, dx += dy w. Requires dense_shape::data_gradient, and weight_gradient() with the same dy just
  // before: the copy of dy that it leaves in the scratch is read here.
  void data_gradient(const float* w, const void* dy, void* dx, bool add);

  // Appends a line "NAME DIRECTION: ALGORITHM IMPLEMENTATION\n" per direction that prepare() built, for op::report().
  void report(const std::string& name, std::string& text) const;

private:
  bool copies_x() const { return dev_->half && !shape_.x_half; }
  bool copies_y() const { return dev_->half && !shape_.y_half; }
  void narrow(bf16* to, const void* from, std::size_t count) const;

  const device* dev_ = nullptr;
  dense_shape shape_{};
  gemm forward_, weight_gradient_[2], data_gradient_[2]; // the second ones accumulate
  slot x_slot_ = no_slot, w_slot_ = no_slot;
  bf16 *x_ = nullptr, *w_ = nullptr;                         // in bf16
  std::size_t gemm_scratch_at_ = 0, gemm_scratch_bytes_ = 0; // scratch; the bf16 copy of y's gradient comes first
};

} // namespace onednn

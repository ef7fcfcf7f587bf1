// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/dropout.hpp"
#include "runtime/program.hpp"

namespace cudnn {

// Provides kernels with the seed of a dropout layer. It changes from step to step, so it is no kernel argument but in
// class staging (runtime/staging.hpp): memory that the host writes before each step and copies to the device.
class dropout_seed {
public:
  // p: probability of a zero. `layer`: the op's attribute "layer"; layers of different numbers draw different elements.
  dropout_seed(double p, std::uint32_t layer) : p_(p), layer_(layer) {}
  // Reserves space, from op::prepare(). An op without dropout leaves this call out, and vary() then does nothing.
  void reserve(staging& s) { numbers_.reserve(s, 2); }
  // Writes the seed of this step and layer to the staging, from op::vary().
  void vary(const rg_batch& b) const;
  // Returns the argument of kernels. Its seed is null if dropout is off: in evaluation, or if p is 0.
  kernels::dropout_args of(const run& r) const;

private:
  double p_;
  std::uint32_t layer_;
  staged<std::uint64_t> numbers_; // the seed; the number of the first sample in the global batch
};

// In training: zeroes each element with probability p and multiplies the others by 1 / (1 - p). In evaluation: copies
// x. p and layer as for dropout_seed; requires p > 0.
class dropout : public op {
public:
  dropout(std::string name, value* in, value* out, double p, std::uint32_t layer)
      : op(std::move(name), {in}, out), dropout_(p, layer) {}
  void prepare(device& d) override { dropout_.reserve(d.varying); }
  void vary(const run& r) override { dropout_.vary(r.batch); }
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  dropout_seed dropout_;
};

} // namespace cudnn

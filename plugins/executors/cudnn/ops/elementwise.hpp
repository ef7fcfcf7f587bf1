// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops, and ops that only move elements.
#pragma once

#include "kernels/elementwise.hpp"
#include "runtime/program.hpp"

namespace cudnn {

// y = f(x), element by element.
class map : public op {
public:
  map(std::string name, value* in, value* out, function f) : op(std::move(name), {in}, out), function_(f) {}
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  function function_;
};

// Provides kernels with the seed of a dropout layer, which changes from step to step and so lies in the staging.
class drawn {
public:
  // p: probability of a zero. `layer`: the op's attribute "layer"; layers of different numbers draw different elements.
  drawn(double p, std::uint32_t layer) : p_(p), layer_(layer) {}
  // Reserves space, from op::prepare(). An op without dropout leaves this call out, and vary() then does nothing.
  void ask(staging& s) { numbers_.ask(s, 2); }
  // Writes the seed of this step and layer to the staging, from op::vary().
  void vary(const rg_batch& b) const;
  // Returns the argument of kernels. Its seed is null if dropout is off: in evaluation, or if p is 0.
  kernels::dropping of(const run& r) const;

private:
  double p_;
  std::uint32_t layer_;
  staged<std::uint64_t> numbers_; // the seed; the number of the first sample in the global batch
};

// In evaluation: copies x. p and layer as for drawn; requires p > 0.
class dropout : public op {
public:
  dropout(std::string name, value* in, value* out, double p, std::uint32_t layer)
      : op(std::move(name), {in}, out), drawn_(p, layer) {}
  void prepare(device& d) override { drawn_.ask(d.varying); }
  void vary(const run& r) override { drawn_.vary(r.batch); }
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  drawn drawn_;
};

// y = a + b, two inputs of the same shape.
class addition : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

// Copies its one input to the output's type and layout. The shapes may differ, but not the number of elements: flatten
// of a channels-last image is a relayout, too.
class relayout : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  // Returns the layout of v. If v is the flattened image `other`, this is the NCHW layout of that image; so the layouts
  // of input and output have the same channels.
  static picture like(const value& v, const value& other);
};

// Concatenates the elements of its inputs, which are vectors, per sample.
class concatenation : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

// y = a . b / (|a| |b|) per sample, or 0, with zero gradients, if |a| |b| < 1e-12.
class cosine : public op {
public:
  using op::op;
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override { return 12.0 * static_cast<double>(inputs_[0].from->elements()); }

private:
  buffer sizes_; // of kernels::cosine()
};

} // namespace cudnn

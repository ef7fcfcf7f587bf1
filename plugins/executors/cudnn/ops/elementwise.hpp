// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops, and ops that only move elements.
#pragma once

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
  static image_layout like(const value& v, const value& other);
};

// Concatenates the elements of its inputs, which are vectors, per sample.
class concatenation : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

} // namespace cudnn

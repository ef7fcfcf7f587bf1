// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops, and ops that only move elements.
#pragma once

#include "maps.hpp"
#include "program.hpp"

namespace cudnn {

class map : public op {
public:
  map(std::string name, value* in, value* out, function f) : op(std::move(name), {in}, out), function_(f) {}
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  function function_;
};

// The random numbers of a dropout layer in a step.
class drawn {
public:
  drawn(double p, std::uint32_t layer) : p_(p), layer_(layer) {}
  void ask(staging& s) { numbers_.ask(s, 2); }
  void vary(const rg_batch& b) const;
  kernels::dropping of(const run& r) const; // seed null: dropout is off

private:
  double p_;
  std::uint32_t layer_;
  staged<std::uint64_t> numbers_; // the seed; the number of the first sample in the global batch
};

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

class addition : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

// Converts the type or the layout of a tensor.
class relayout : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;

private:
  // Returns v's layout with as many channels as `other` has, so that both describe the same image.
  static picture like(const value& v, const value& other);
};

// Concatenates vectors.
class concatenation : public op {
public:
  using op::op;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

// a . b / (|a| |b|), or 0 if |a| |b| is nearly 0.
class cosine : public op {
public:
  using op::op;
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  double flops() const override { return 12.0 * static_cast<double>(inputs_[0].from->elements()); }

private:
  buffer sizes_;
};

} // namespace cudnn

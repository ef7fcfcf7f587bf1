// SPDX-License-Identifier: Apache-2.0
//
// Functions of single elements, addition, concatenation, and conversions of type and layout. All but addition and
// conversion take and return fp32 values only.
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// y = f(x) for every element of a sequence, where f is not fused into a dense layer.
class elementwise final : public op {
public:
  elementwise(std::string name, value* in, value* out, elementwise_function f, const device& dev)
      : op(std::move(name), {in}, out), dev_(dev), function_(f) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool backward_in_place(std::size_t) const override { return true; }

private:
  const device& dev_;
  elementwise_function function_;
  std::size_t rows_ = 0;
};

// y = a + b, all three of one layout and one type, fp32 or bf16. y may take the memory of a if b is another value.
class addition final : public op {
public:
  addition(std::string name, value* a, value* b, value* out, const device& dev)
      : op(std::move(name), {a, b}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool forward_in_place() const override { return inputs_[0].from != inputs_[1].from; }
  bool backward_in_place(std::size_t) const override { return true; }

private:
  const device& dev_;
  std::size_t count_ = 0;
};

// Converts a value from fp32 to bf16 or from bf16 to fp32; the input's value::half decides. The layout stays. The
// backward pass converts the gradient in the opposite direction.
class conversion final : public op {
public:
  conversion(std::string name, value* in, value* out, const device& dev) : op(std::move(name), {in}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  // Converts a batch at `in`, which has the type and the stride of `from`, into the other type at `out`.
  void copy(const value& from, const float* in, float* out) const;
  const device& dev_;
  std::size_t batch_ = 0;
};

// Converts fp32 samples from row-major to blocked by channels (`to_blocked`), for ops that need blocks, or from blocked
// to row-major, for flatten. The backward pass converts the gradient in the opposite direction. The forward pass sets
// padding to zero.
class relayout final : public op {
public:
  relayout(std::string name, value* in, value* out, bool to_blocked, const device& dev);
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  const device& dev_;
  bool to_blocked_;
  std::size_t batch_ = 0;
};

// Concatenates vectors of features, in the order of the inputs.
class concatenation final : public op {
public:
  concatenation(std::string name, const std::vector<value*>& parts, value* out, const device& dev)
      : op(std::move(name), parts, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  const device& dev_;
  std::size_t batch_ = 0;
};

// x / (1 + |x|) of every element.
class softsign final : public op {
public:
  softsign(std::string name, value* in, value* out, const device& dev) : op(std::move(name), {in}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  const device& dev_;
  std::size_t batch_ = 0;
};

// 1 / (1 + exp(-x)) of every element of a blocked value, on the calling thread.
class sigmoid final : public op {
public:
  sigmoid(std::string name, value* in, value* out) : op(std::move(name), {in}, out) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool backward_in_place(std::size_t) const override { return true; }

private:
  std::size_t count_ = 0;
};

} // namespace onednn

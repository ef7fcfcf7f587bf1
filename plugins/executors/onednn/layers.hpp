// SPDX-License-Identifier: Apache-2.0
//
// Dense layers, pooling, addition, conversions of type and layout, and softmax with cross-entropy.
#pragma once

#include "../common/layer_shapes.hpp"
#include "dense_products.hpp"
#include "program.hpp"

namespace onednn {

// y = f(x w^T + b) for every row of a sample: a vector is one row, a sequence has one per position. Weights are
// canonical. Input and output are fp32 or bf16 in memory, as their value::half says.
class dense final : public op {
public:
  dense(std::string name, value* in, value* out, weight* w, weight* bias, row_function f, std::size_t rows_a_sample,
        const device& dev);
  void prepare(const preparation&) override;
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool adds_gradients() const override { return true; }
  std::size_t scratch_bytes() const override { return products_.scratch_bytes(); }
  double flops() const override;
  void report(std::string& text) const override { products_.report(name_, text); }

private:
  std::size_t inputs_a_row() const { return inputs_[0].from->elements() / rows_a_sample_; }
  std::size_t outputs_a_row() const { return output_->elements() / rows_a_sample_; }
  std::size_t stride() const { return output_->stride / rows_a_sample_; } // from row to row of the output

  // Compute f; and the gradients of f's argument and of the bias. T: the output's type in memory.
  template <class T> void map();
  template <class T> void map_gradient();

  const device& dev_;
  weight *weight_, *bias_;
  row_function function_;
  std::size_t rows_a_sample_, rows_ = 0;
  dense_products products_;
  slot slot_ = no_slot;
  float* before_ = nullptr; // f's argument if f's gradient needs it, else the output; of the output's type
};

struct pool_shape : executors::window_shape {
  bool average;
};

// Pooling of any window, by oneDNN.
class pooling final : public op {
public:
  pooling(std::string name, value* in, value* out, const pool_shape& s, const device& dev);
  void prepare(const preparation&) override;
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  std::size_t scratch_bytes() const override { return scratch_; }

private:
  const device& dev_;
  pool_shape shape_;
  dnnl::primitive forward_, backward_;
  dnnl::memory x_, y_, dx_, dy_, workspace_, scratchpad_forward_, scratchpad_backward_;
  std::size_t scratch_ = 0;
  slot slot_ = no_slot;
};

// a + b.
class addition final : public op {
public:
  addition(std::string name, value* a, value* b, value* out, const device& dev)
      : op(std::move(name), {a, b}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool forward_in_place() const override { return inputs_[0].from != inputs_[1].from; }
  bool backward_in_place() const override { return true; }

private:
  const device& dev_;
  std::size_t count_ = 0;
};

// Converts fp32 to bf16, or back.
class conversion final : public op {
public:
  conversion(std::string name, value* in, value* out, const device& dev) : op(std::move(name), {in}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  void copy(const value& from, const float* in, float* out) const;
  const device& dev_;
  std::size_t batch_ = 0;
};

// Converts row-major samples to blocked ones, for ops that take blocks; or back, for flatten.
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

// Softmax and cross-entropy over classes; the label is the second input.
class cross_entropy final : public loss {
public:
  cross_entropy(std::string name, value* logits, value* label, value* out, const device& dev);
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  const device& dev_;
  std::size_t batch_ = 0;
  slot slot_ = no_slot;
  float* probabilities_ = nullptr; // [batch, classes]
  std::vector<double> losses_;     // [batch]
};

} // namespace onednn

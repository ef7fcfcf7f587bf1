// SPDX-License-Identifier: Apache-2.0
//
// Ops of the oneDNN executor: dense layers, pooling, addition, conversions of type and layout, and softmax with
// cross-entropy. program.hpp documents the functions that they override.
#pragma once

#include "../common/layer_shapes.hpp"
#include "kernels/dense.hpp"
#include "runtime/program.hpp"

namespace onednn {

// y = f(x w^T + b) for every row of a sample: a vector of features is one row, a sequence has one row per position. f
// is the identity, ReLU, GELU or tanh; `bias` may be null. Weights are fp32 in canonical layout, w as [outputs,
// inputs]. Input and output are bf16 in memory if their value::half is set, else fp32.
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

  // Both for all rows of the batch; T is the output's type in memory. map() applies f. map_gradient() replaces the
  // output's gradient by that of f's argument, and adds the sum of the latter over the rows to the bias's gradient, if
  // there is a bias.
  template <class T> void map();
  template <class T> void map_gradient();

  const device& dev_;
  weight *weight_, *bias_;
  row_function function_;
  std::size_t rows_a_sample_, rows_ = 0; // rows_: of the batch
  dense_products products_;
  slot slot_ = no_slot;
  // The GEMM's result, f's argument: in a slot of its own if f's gradient reads it (GELU), else in the output, where f
  // overwrites it. Elements have the output's type; access them with as().
  float* before_ = nullptr;
};

struct pool_shape : executors::window_shape {
  bool average; // else maximum; an average does not count padding
};

// Pooling with any window, by oneDNN's primitives. Compilation fuses 2x2 max pooling into an activation where it can.
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

// y = a + b, all three of one type, fp32 or bf16.
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

// Converts a value from fp32 to bf16 or from bf16 to fp32; the input's value::half decides. The backward pass converts
// the gradient in the opposite direction.
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

// Cross-entropy of the softmax of fp32 logits [batch, classes]. The second input has one label per sample, an int32
// from 0 to classes - 1; forward() throws rg::error (RG_E_OPERATION) for any other. The metric is top-1 accuracy.
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
  std::vector<double> losses_;     // [batch]; summed in order, for any number of threads
};

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/dense.hpp"
#include "runtime/program.hpp"

namespace onednn {

// y = f(x w^T + b) for every row of a sample: a vector of features is one row, a sequence has one row per position. f
// is the identity, ReLU, GELU or tanh; `bias` may be null. Weights are fp32 in canonical layout, w as [outputs,
// inputs]. Input and output are bf16 in memory if their value::half is set, else fp32. With device::half the GEMMs
// compute in bf16.
class dense final : public op {
public:
  dense(std::string name, value* in, value* out, weight* w, weight* bias, elementwise_function f,
        std::size_t rows_a_sample, const device& dev);
  void prepare(const preparation&) override;
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  bool adds_gradients() const override { return true; }
  std::size_t scratch_bytes() const override { return gemms_.scratch_bytes(); }
  double flops() const override;
  void report(std::string& text) const override { gemms_.report(name_, text); }

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
  elementwise_function function_;
  std::size_t rows_a_sample_, rows_ = 0; // rows_: of the batch
  dense_gemms gemms_;
  slot slot_ = no_slot;
  // The GEMM's result, f's argument: in a slot of its own if f's gradient reads it (GELU), else in the output, where f
  // overwrites it. Elements have the output's type; access them with as().
  float* before_ = nullptr;
};

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/layer_shapes.hpp"
#include "kernels/gemm.hpp"

namespace onednn {

using executors::attention_shape;

// Multi-head attention: dropout(softmax(q k^T / sqrt(d))) v for each head, with dropout in training only; d is the
// number of features of a head, and head h has the features h d to (h + 1) d - 1. Queries, keys, values and output are
// row-major sequences with equally many features. `indices` is an input of type RG_I32 with one token per key. Keys of
// token 0 are ignored; with attention_shape::causal, so are keys after the query's position. If all keys of a query are
// ignored, its output is 0. Each thread computes one head of one sample at a time, so that probabilities stay in the
// cache. With device::half, queries, keys, values, output and the operands of all GEMMs are bf16; the softmax is fp32.
class attention final : public op {
public:
  attention(std::string name, value* query, value* key, value* values, value* indices, value* out,
            const attention_shape& s, const device& dev);
  void prepare(const preparation&) override;
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  std::size_t scratch_bytes() const override { return static_cast<std::size_t>(dev_.threads) * thread_bytes(); }
  double flops() const override;
  void report(std::string& text) const override;

private:
  // The GEMMs of one head. Each thread has its own.
  struct head_gemms {
    gemm scores, mix;                                                 // q k^T, a v
    gemm values_gradient, mix_gradient, query_gradient, key_gradient; // a^T dy, dy v^T, ds k, ds^T q
  };
  // Working memory of a thread: `first` and `second` are matrices [queries, keys], `rounded` holds such a matrix in
  // bf16 for a GEMM, and `seen` holds 1 for each key that is not padding, else 0.
  struct workspace {
    head_gemms& multiply;
    float *first, *second, *seen;
    bf16* rounded;
    std::byte* scratch;
  };

  std::size_t queries() const { return output_->positions(); }
  std::size_t keys() const { return inputs_[1].from->positions(); }
  std::size_t size() const { return output_->features() / shape_.heads; } // of a head
  // The head's first bit in the sample's dropout mask.
  std::size_t mask_offset(std::size_t head) const { return head * queries() * keys(); }
  std::size_t thread_bytes() const;
  // Address of element `at` of input i, and of its gradient.
  const void* data(std::size_t i, std::size_t at) const { return inputs_[i].from->at(inputs_[i].from->data, at); }
  void* gradient(std::size_t i, std::size_t at) const { return inputs_[i].from->at(inputs_[i].gradient, at); }
  // Calls f(sample, head, workspace) for every head of every sample, on the device's threads.
  template <class F> void each_head(const F& f);
  // Returns a matrix [queries, keys] as a GEMM's operand: the matrix itself, or, if the device computes in bf16, its
  // copy in w.rounded, which the next call overwrites.
  const void* operand(const workspace& w, const float* matrix) const;

  const device& dev_;
  attention_shape shape_;
  std::size_t batch_ = 0;
  std::size_t mask_stride_ = 0;        // bytes of a sample's dropout mask, padding included
  std::size_t gemm_scratch_bytes_ = 0; // the most that one of the GEMMs needs
  std::vector<head_gemms> gemms_;      // by thread
  bool dropped_ = false;               // the last forward pass applied dropout
  slot slot_ = no_slot, mask_slot_ = no_slot;
  float* probabilities_ = nullptr; // [batch, heads, queries, keys], before dropout
  std::uint8_t* mask_ = nullptr;   // by sample, one bit per probability; null without dropout
};

} // namespace onednn

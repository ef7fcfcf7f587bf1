// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program.hpp"

namespace onednn {

struct attention_shape {
  std::size_t heads = 1;
  bool causal = false;
  double dropout = 0; // probability
  std::uint32_t layer = 0;
};

// softmax(q k^T / sqrt(d)) v by head; a sample and head at a time, so that its probabilities stay in the cache.
class attention final : public op {
public:
  attention(std::string name, value* query, value* key, value* values, value* indices, value* out,
            const attention_shape& s, const device& dev);
  void plan(memory_plan&) override;
  void attach(const memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;
  std::size_t scratch_bytes() const override;
  double flops() const override;

private:
  std::size_t queries() const { return output_->channels; }
  std::size_t keys() const { return inputs_[1].from->channels; }
  std::size_t size() const { return output_->height / shape_.heads; } // of a head
  std::size_t mask_offset(std::size_t head) const { return head * queries() * keys(); }
  // Runs f(sample, head, scratch) for all, with matrices of [queries, keys] in the thread's scratch.
  template <class F> void each_head(const F& f) const;

  const device& dev_;
  attention_shape shape_;
  std::size_t batch_ = 0, mask_stride_ = 0;
  bool dropped_ = false;
  slot slot_ = no_slot, mask_slot_ = no_slot;
  float* probabilities_ = nullptr; // [batch, heads, queries, keys], before dropout
  std::uint8_t* mask_ = nullptr;
};

} // namespace onednn

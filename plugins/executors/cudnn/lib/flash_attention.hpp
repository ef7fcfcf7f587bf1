// SPDX-License-Identifier: Apache-2.0
//
// dropout(softmax(factor q k^T + mask)) v without its scores in memory (Dao et al. 2022, "FlashAttention"; the backward
// pass recomputes them, section 3.1), as the operation graphs that cuDNN's engines for attention recognise.
#pragma once

#include "lib/cudnn_graph.hpp"

namespace cudnn {

// factor is 1 / sqrt(size). With `causal`, query i sees keys 0 .. i.
struct flash_shape {
  dtype type;
  std::int64_t samples, heads, queries, keys, size; // size: features of a head
  bool causal;
  double dropout = 0; // probability
};

class flash_attention {
public:
  // Makes the plans, which may take seconds; equal shapes share them. Returns null if cuDNN has no deterministic
  // engine: for fp32, on GPUs before sm_80, for head sizes that are not a multiple of 8 or too large.
  static std::unique_ptr<flash_attention> of(planner& p, const flash_shape& s);

  // Queries, keys, values, outputs and their gradients are [sample, position, head, feature], of flash_shape::type. All
  // addresses are in device memory, which belongs to the caller.
  struct values {
    const void *query, *key, *value;
    const void* mask;  // [sample, key], same type; 0 or least_mask; added to the scores
    void* out;         // written by forward(), read by backward()
    float* statistics; // [sample, head, query]: log of the sum of exponentials; written and read as `out`
    // [sample, head, query, key], same type: 1 if dropout keeps the probability, else 0. Null: forward() without
    // dropout. Must be null if flash_shape::dropout is 0; else backward() requires it.
    const void* kept;
  };
  // `out`, the output's gradient, is read. The gradients of query, key and value are overwritten; none may be null.
  // `sums` is scratch of statistics() floats.
  struct gradients {
    const void* out;
    void *query, *key, *value;
    float* sums;
  };
  std::size_t statistics() const; // size of values::statistics, in floats
  std::size_t workspace() const;  // size of `workspace`, in bytes
  // Enqueue a pass in the stream of h; they may be captured. backward() takes the same values as the forward() before
  // it. They throw rg::error, RG_E_DEVICE, whose text has `name`.
  void forward(cudnnHandle_t h, const values& v, void* workspace, const char* name);
  void backward(cudnnHandle_t h, const values& v, const gradients& g, void* workspace, const char* name);

private:
  explicit flash_attention(const flash_shape& s) : shape_(s) {}
  flash_shape shape_;
  execution forward_, backward_;
  execution evaluation_; // forward pass without dropout; empty if training has no dropout either
};

// The mask value that hides a key: the lowest finite number of fp16 (-65536 in bf16). Infinity would yield NaN in a row
// whose keys are all hidden. With this value such rows are finite; the caller sets them to zero.
constexpr float least_mask = -65504;

} // namespace cudnn

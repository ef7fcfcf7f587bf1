// SPDX-License-Identifier: Apache-2.0
//
// dropout(softmax(factor q k^T + mask)) v without its scores in memory (Dao et al. 2022, "FlashAttention"; the backward
// pass recomputes them, section 3.1), as the operation graphs that cuDNN's engines for attention recognise.
#pragma once

#include "graph.hpp"

namespace cudnn {

struct flash_shape {
  number type;
  std::int64_t samples, heads, queries, keys, size; // size: features of a head
  bool causal;
  double dropout = 0; // probability
};

class flash {
public:
  // Returns null if cuDNN has no deterministic engine: for fp32, on GPUs before sm_80, for head sizes that are not a
  // multiple of 8 or too large.
  static std::unique_ptr<flash> of(planner& p, const flash_shape& s);

  // Queries, keys, values, outputs and their gradients are [sample, position, head, feature].
  struct values {
    const void *query, *key, *value;
    const void* mask;  // [sample, key], same type; 0 or least_mask; added to the scores
    void* out;         // read by the backward pass
    float* statistics; // [sample, head, query]: log of the sum of exponentials, for the backward pass
    // [sample, head, query, key], same type: 1 if dropout keeps the probability, else 0; null: no dropout in this pass
    const void* kept;
  };
  // Everything but `out`, the output's gradient, is overwritten. `sums`: as many floats as statistics().
  struct gradients {
    const void* out;
    void *query, *key, *value;
    float* sums;
  };
  std::size_t statistics() const; // in floats
  std::size_t workspace() const;
  void forward(cudnnHandle_t h, const values& v, void* workspace, const char* name);
  void backward(cudnnHandle_t h, const values& v, const gradients& g, void* workspace, const char* name);

private:
  explicit flash(const flash_shape& s) : shape_(s) {}
  flash_shape shape_;
  execution forward_, backward_;
  execution evaluation_; // forward pass without dropout; only if training has dropout
};

// The mask value that hides a key: the lowest finite number of fp16 (-65536 in bf16). Infinity would yield NaN in a row
// whose keys are all hidden. With this value such rows are finite; the caller sets them to zero.
constexpr float least_mask = -65504;

} // namespace cudnn

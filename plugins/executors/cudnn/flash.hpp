// SPDX-License-Identifier: Apache-2.0
//
// dropout(softmax(factor q k^T + mask)) v without its scores in memory (Dao et al. 2022, "FlashAttention"; the backward
// pass makes them again, section 3.1), as the operation graphs that cuDNN's engines for attention recognise.
#pragma once

#include "graph.hpp"

namespace cudnn {

struct flash_shape {
  number type;
  std::int64_t samples, heads, queries, keys, size; // size: of a head
  bool causal;
  double dropout = 0; // of the probabilities
};

class flash {
public:
  // Null where cuDNN has no engine for it that gives the same result every time: in fp32, on GPUs before sm_80, for heads
  // whose size is no multiple of 8 or too large.
  static std::unique_ptr<flash> of(planner& p, const flash_shape& s);

  // Queries, keys and values lie [sample, place, head, element], likewise results and gradients.
  struct values {
    const void *query, *key, *value;
    const void* mask;  // [sample, key], of their type: 0 or least_mask; added to the scores
    void* out;         // read by the backward pass
    float* statistics; // [sample, head, query]: log of the sum of the exponentials, for the backward pass
    const void* kept;  // [sample, head, query, key], of their type: 1 where dropout keeps a probability, else 0; null:
                       // there is none, or none in this forward pass
  };
  // out and gradients are overwritten. `sums`: room for as many floats as there are statistics.
  struct gradients {
    const void* out;
    void *query, *key, *value;
    float* sums;
  };
  std::size_t statistics() const; // elements
  std::size_t workspace() const;
  void forward(cudnnHandle_t h, const values& v, void* workspace, const char* name);
  void backward(cudnnHandle_t h, const values& v, const gradients& g, void* workspace, const char* name);

private:
  explicit flash(const flash_shape& s) : shape_(s) {}
  flash_shape shape_;
  execution forward_, backward_;
  execution evaluation_; // forward, where only training drops
};

// What hides a key: the least number of fp16, which bf16 has, too, nearly. Infinity would make a row of nothing else
// not-a-number; as it is the caller blanks such rows.
constexpr float least_mask = -65504;

} // namespace cudnn

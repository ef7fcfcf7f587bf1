// SPDX-License-Identifier: Apache-2.0
//
// Kernels for attention. The functions enqueue work in stream `s` and return at once; device::check_launch() reports
// launch errors. Pointers are to memory that the device can access. `t` is the element type behind void pointers.
// Inputs and outputs must not overlap. Sizes are not checked, and a kernel handles less than 2^32 elements.
#pragma once

#include "kernels/dropout.hpp"

namespace cudnn::kernels {

// The probabilities of attention, [samples, heads, queries, keys], from scores in fp32. Key j of a sample is visible if
// keys_of[sample, j] is not 0 and, with `causal`, to queries j and later only. An invisible key has probability 0; a
// query without visible keys has zeros only.
struct attention_args {
  std::size_t samples;
  std::uint32_t heads, queries, keys;
  bool causal;
  float factor;                // multiplies the scores; not negative
  const std::int32_t* keys_of; // [samples, keys]
};
// Writes the probabilities, and to `dropped`, if it is not null, the probabilities after dropout, scaled by draw.scale.
// Without dropout draw.seed is null, and `dropped` may be.
void softmax(cudaStream_t s, dtype t, const attention_args& a, const float* scores, void* probabilities, void* dropped,
             const dropout_args& draw);
// Computes dscores, of type t, the gradient of the scores, from `dprobabilities`, the gradient of the probabilities
// after dropout, and from `probabilities`, those before dropout. `draw` as in softmax().
void softmax_gradient(cudaStream_t s, dtype t, const attention_args& a, const void* probabilities,
                      const float* dprobabilities, const dropout_args& draw, void* dscores);

// For attention by cuDNN; a.causal and a.factor are ignored here. mask[sample, key], of type t, = 0 if the key is
// visible, else `hidden`; first[sample] = the first visible key, or the number of keys if there is none.
void key_mask(cudaStream_t s, dtype t, const attention_args& a, float hidden, void* mask, std::uint32_t* first);
// kept[sample, head, query, key], of type t, = 1 if dropout keeps the probability, else 0; the same choice as in
// softmax(). Requires draw.seed.
void dropout_mask(cudaStream_t s, dtype t, const attention_args& a, const dropout_args& draw, void* kept);
// Sets the rows [sample, query, width] of queries without visible keys to zeros; heeds a.causal. `first`: of
// key_mask().
void clear_blind_queries(cudaStream_t s, dtype t, const attention_args& a, const std::uint32_t* first, void* rows,
                         std::uint32_t width);

} // namespace cudnn::kernels

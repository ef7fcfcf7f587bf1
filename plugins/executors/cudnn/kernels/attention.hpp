// SPDX-License-Identifier: Apache-2.0
//
// Kernels for positions of sequences: layer norm, the softmax of attention, selection of positions; and cosine
// similarity. The conventions of maps.hpp hold.
#pragma once

#include "kernels/elementwise.hpp"

namespace cudnn::kernels {

// Layer norm (Ba, Kiros and Hinton 2016) of `rows` rows of `size` elements, with the biased variance. layer_norm()
// writes mean and inverse, the gradient reads them.
struct layer_normalising {
  std::size_t rows;
  std::uint32_t size;
  const float *scale, *bias; // [size]
  float *mean, *inverse;     // [rows]; inverse = 1 / sqrt(variance + epsilon)
  float epsilon;
};
void layer_norm(cudaStream_t s, number t, const layer_normalising& n, const void* x, void* y);
// dx, of type t, may be null.
struct layer_norm_gradients {
  void* dx;
  float *dscale, *dbias; // [size]
  bool add_dx, add_scale, add_bias;
};
std::size_t layer_norm_partials(std::size_t rows, std::uint32_t size); // size of `partials`, in floats
void layer_norm_gradient(cudaStream_t s, number t, const layer_normalising& n, const void* x, const void* dy,
                         const layer_norm_gradients& g, float* partials);

// The probabilities of attention, [samples, heads, queries, keys], from scores in fp32. Key j of a sample is visible if
// keys_of[sample, j] is not 0 and, with `causal`, to queries j and later only. An invisible key has probability 0; a
// query without visible keys has zeros only.
struct attending {
  std::size_t samples;
  std::uint32_t heads, queries, keys;
  bool causal;
  float factor; // multiplies the scores
  const std::int32_t* keys_of;
};
// Writes the probabilities, and to `dropped`, if it is not null, the probabilities after dropout, scaled by draw.scale.
// Without dropout draw.seed is null, and `dropped` may be.
void softmax(cudaStream_t s, number t, const attending& a, const float* scores, void* probabilities, void* dropped,
             const dropping& draw);
// Computes dscores, of type t, the gradient of the scores, from `slopes`, the gradient of the probabilities after
// dropout, and from `probabilities`, those before dropout. `draw` as in softmax().
void softmax_gradient(cudaStream_t s, number t, const attending& a, const void* probabilities, const float* slopes,
                      const dropping& draw, void* dscores);

// For attention by cuDNN; a.causal and a.factor are ignored here. mask[sample, key], of type t, = 0 if the key is
// visible, else `hidden`; first[sample] = the first visible key, or the number of keys if there is none.
void mask_keys(cudaStream_t s, number t, const attending& a, float hidden, void* mask, std::uint32_t* first);
// kept[sample, head, query, key], of type t, = 1 if dropout keeps the probability, else 0; the same choice as in
// softmax(). Requires draw.seed.
void draw_kept(cudaStream_t s, number t, const attending& a, const dropping& draw, void* kept);
// Sets the rows [sample, query, width] of queries without visible keys to zeros; heeds a.causal. `first`: of
// mask_keys().
void blank_unseeing(cudaStream_t s, number t, const attending& a, const std::uint32_t* first, void* rows,
                    std::uint32_t width);

// y[b, m] = x[b, indices[b, m]], or x[b, m] if indices is null; rows of `size` elements. x has `places` rows per
// sample, y has `taken`. dx is the sum over all m that selected the row, in ascending order, and zeros for other rows.
struct taking {
  std::size_t samples;
  std::uint32_t places, taken, size;
  const std::int32_t* indices; // [samples, taken], 0 .. places - 1
};
void take_places(cudaStream_t s, number t, const taking& k, const void* x, void* y);
void take_places_gradient(cudaStream_t s, number t, const taking& k, const void* dy, void* dx, bool add);

// y[r] = a . b / (|a| |b|) of rows of `size`; 0, with zero gradients, if |a| |b| < 1e-12. sizes[r]: 3 floats that
// cosine() writes and the gradient reads.
void cosine(cudaStream_t s, number t, const void* a, const void* b, void* y, float* sizes, std::size_t rows,
            std::uint32_t size);
// Computes the gradient of argument a. For the gradient of the other argument, exchange a and b and set `second`.
void cosine_gradient(cudaStream_t s, number t, const void* a, const void* b, const void* dy, const float* sizes,
                     bool second, void* da, std::size_t rows, std::uint32_t size, bool add);

} // namespace cudnn::kernels

// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the places of sequences: layer norm, the softmax of attention, places that are taken; and the cosine of
// vectors. What is said in maps.hpp holds.
#pragma once

#include "maps.hpp"

namespace cudnn::kernels {

// Layer norm (Ba, Kiros and Hinton 2016) of `rows` rows of `size` elements.
struct layer_normalising {
  std::size_t rows;
  std::uint32_t size;
  const float *scale, *bias; // [size]
  float *mean, *inverse;     // [rows]: of the rows, 1 / sqrt(variance + epsilon)
  float epsilon;
};
void layer_norm(cudaStream_t s, number t, const layer_normalising& n, const void* x, void* y);
// dx may be null.
struct layer_norm_gradients {
  void* dx;
  float *dscale, *dbias;
  bool add_dx, add_scale, add_bias;
};
std::size_t layer_norm_partials(std::size_t rows, std::uint32_t size); // room, in floats
void layer_norm_gradient(cudaStream_t s, number t, const layer_normalising& n, const void* x, const void* dy,
                         const layer_norm_gradients& g, float* partials);

// The probabilities of attention, [samples, heads, queries, keys], from scores in floats. Key j of a sample is seen where
// keys_of[sample, j] is not 0, and, if causal, by queries from number j on. What sees nothing gets zeros.
struct attending {
  std::size_t samples;
  std::uint32_t heads, queries, keys;
  bool causal;
  float factor; // on the scores
  const std::int32_t* keys_of;
};
// `dropped`: the probabilities after dropout; null: there is none. draw.seed null: likewise.
void softmax(cudaStream_t s, number t, const attending& a, const float* scores, void* probabilities, void* dropped,
             const dropping& draw);
// `slopes`: of the dropped probabilities; what comes out is that of the scores.
void softmax_gradient(cudaStream_t s, number t, const attending& a, const void* probabilities, const float* slopes,
                      const dropping& draw, void* dscores);

// For attention that is computed elsewhere: mask[sample, key] = 0 where the key is seen, else `hidden`; first[sample] = the
// first key that is seen, or how many there are.
void mask_keys(cudaStream_t s, number t, const attending& a, float hidden, void* mask, std::uint32_t* first);
// kept[sample, head, query, key] = 1 where dropout keeps a probability, else 0: what softmax() drops.
void draw_kept(cudaStream_t s, number t, const attending& a, const dropping& draw, void* kept);
// Rows [sample, query, width] of queries that see nothing become zeros.
void blank_unseeing(cudaStream_t s, number t, const attending& a, const std::uint32_t* first, void* rows,
                    std::uint32_t width);

// y[b, m] = x[b, indices[b, m]], or x[b, m] where indices is null; rows of `size` elements.
struct taking {
  std::size_t samples;
  std::uint32_t places, taken, size;
  const std::int32_t* indices;
};
void take_places(cudaStream_t s, number t, const taking& k, const void* x, void* y);
void take_places_gradient(cudaStream_t s, number t, const taking& k, const void* dy, void* dx, bool add);

// y[r] = a . b / (|a| |b|) of rows of `size`; 0 where the lengths' product is under 1e-12. sizes[r]: what the gradient
// needs of it, 3 floats.
void cosine(cudaStream_t s, number t, const void* a, const void* b, void* y, float* sizes, std::size_t rows,
            std::uint32_t size);
// da, the slope along the first of the two; the other way round it is db.
void cosine_gradient(cudaStream_t s, number t, const void* a, const void* b, const void* dy, const float* sizes,
                     bool second, void* da, std::size_t rows, std::uint32_t size, bool add);

} // namespace cudnn::kernels

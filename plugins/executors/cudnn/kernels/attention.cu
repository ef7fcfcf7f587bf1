// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.hpp"

#include "kernels/launch.hpp"

namespace cudnn::kernels {
namespace {

struct head {
  index_t sample, number, query;
};
REGATTA_DEVICE inline head head_of(const attention_args& a, index_t row) {
  return {row / a.queries / a.heads, row / a.queries % a.heads, row % a.queries};
}
REGATTA_DEVICE inline bool sees(const attention_args& a, const head& h, index_t key) {
  return (!a.causal || key <= h.query) && a.keys_of[h.sample * a.keys + key] != 0;
}
// Returns the factor of dropout for a probability: 0 or 1 / (1 - p).
REGATTA_DEVICE inline float kept(const attention_args& a, const dropout_args& d, const head& h, index_t key) {
  const std::uint64_t element = (std::uint64_t{h.number} * a.queries + h.query) * a.keys + key;
  return keeps(*d.seed, *d.first + h.sample, element, d.threshold) ? d.scale : 0;
}

template <class T>
void softmax_of(cudaStream_t s, attention_args a, const float* scores, T* probabilities, T* dropped, dropout_args d) {
  for_rows(s, a.samples * a.heads * a.queries, a.keys, [=] REGATTA_DEVICE(const block& b, index_t row) {
    const head h = head_of(a, row);
    const std::size_t at = std::size_t{row} * a.keys;
    constexpr float none = -3.4028235e38F;
    float most = none;
    for (index_t j = b.first(); j < a.keys; j += b.step())
      if (sees(a, h, j) && scores[at + j] > most) most = scores[at + j];
    most = b.most(most);
    float sum = 0;
    for (index_t j = b.first(); j < a.keys; j += b.step())
      if (sees(a, h, j)) sum += expf((scores[at + j] - most) * a.factor);
    sum = b.sum(sum);
    const float inverse = sum > 0 ? 1 / sum : (sum != sum ? sum : 0.0F); // NaN stays NaN
    for (index_t j = b.first(); j < a.keys; j += b.step()) {
      const float p = sees(a, h, j) ? expf((scores[at + j] - most) * a.factor) * inverse : 0;
      put(probabilities + at + j, p);
      if (dropped) put(dropped + at + j, d.seed ? p * kept(a, d, h, j) : p);
    }
  });
}

template <class T>
void softmax_gradient_of(cudaStream_t s, attention_args a, const T* probabilities, const float* dprobabilities,
                         dropout_args d, T* dscores) {
  for_rows(s, a.samples * a.heads * a.queries, a.keys, [=] REGATTA_DEVICE(const block& b, index_t row) {
    const head h = head_of(a, row);
    const std::size_t at = std::size_t{row} * a.keys;
    const auto gradient = [&](index_t j) {
      return d.seed ? dprobabilities[at + j] * kept(a, d, h, j) : dprobabilities[at + j];
    };
    float dot = 0;
    for (index_t j = b.first(); j < a.keys; j += b.step()) dot += gradient(j) * to_float(probabilities[at + j]);
    dot = b.sum(dot);
    for (index_t j = b.first(); j < a.keys; j += b.step())
      put(dscores + at + j, a.factor * to_float(probabilities[at + j]) * (gradient(j) - dot));
  });
}

template <class T> void mask_of(cudaStream_t s, attention_args a, float hidden, T* mask, std::uint32_t* first) {
  for_rows(s, a.samples, a.keys, [=] REGATTA_DEVICE(const block& b, index_t sample) {
    const std::size_t at = std::size_t{sample} * a.keys;
    index_t least = a.keys;
    for (index_t j = b.first(); j < a.keys; j += b.step()) {
      const bool seen = a.keys_of[at + j] != 0;
      put(mask + at + j, seen ? 0 : hidden);
      if (seen && j < least) least = j;
    }
    least = b.least(least);
    if (b.leads()) first[sample] = least;
  });
}
template <class T> void kept_of(cudaStream_t s, attention_args a, dropout_args d, T* kept) {
  const index_t size = a.heads * a.queries * a.keys;
  for_each(s, a.samples * size, [=] REGATTA_DEVICE(index_t i) {
    put(kept + i, keeps(*d.seed, *d.first + i / size, i % size, d.threshold) ? 1 : 0);
  });
}
template <class T>
void blank_of(cudaStream_t s, attention_args a, const std::uint32_t* first, T* rows, std::uint32_t width) {
  for_rows(s, a.samples * a.queries, width, [=] REGATTA_DEVICE(const block& b, index_t row) {
    const index_t last = a.causal && row % a.queries < a.keys ? row % a.queries : a.keys - 1;
    if (first[row / a.queries] <= last) return;
    for (index_t i = b.first(); i < width; i += b.step()) put(rows + std::size_t{row} * width + i, 0);
  });
}

} // namespace

void softmax(cudaStream_t s, dtype t, const attention_args& a, const float* scores, void* probabilities, void* dropped,
             const dropout_args& draw) {
  by_type(t, [&](auto* of) { softmax_of(s, a, scores, as(of, probabilities), as(of, dropped), draw); });
}

void softmax_gradient(cudaStream_t s, dtype t, const attention_args& a, const void* probabilities,
                      const float* dprobabilities, const dropout_args& draw, void* dscores) {
  by_type(t,
          [&](auto* of) { softmax_gradient_of(s, a, as(of, probabilities), dprobabilities, draw, as(of, dscores)); });
}

void key_mask(cudaStream_t s, dtype t, const attention_args& a, float hidden, void* mask, std::uint32_t* first) {
  by_type(t, [&](auto* of) { mask_of(s, a, hidden, as(of, mask), first); });
}

void dropout_mask(cudaStream_t s, dtype t, const attention_args& a, const dropout_args& draw, void* kept) {
  by_type(t, [&](auto* of) { kept_of(s, a, draw, as(of, kept)); });
}

void clear_blind_queries(cudaStream_t s, dtype t, const attention_args& a, const std::uint32_t* first, void* rows,
                         std::uint32_t width) {
  by_type(t, [&](auto* of) { blank_of(s, a, first, as(of, rows), width); });
}

} // namespace cudnn::kernels

// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffast-math, so that sums may be reordered: results differ in their last bits between instruction sets,
// and this file must not test for infinities or NaN.
#include "kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <regatta/simd.hpp>

namespace word2vec_parts {
namespace {

using rg::simd::for_each_vector, rg::simd::load, rg::simd::store;
using rg::simd::vector16, rg::simd::vector4;

inline float sum(const vector16& w, const vector4& rest) noexcept {
  vector4 v = rest;
  v += __builtin_shufflevector(w, w, 0, 1, 2, 3) + __builtin_shufflevector(w, w, 4, 5, 6, 7);
  v += __builtin_shufflevector(w, w, 8, 9, 10, 11) + __builtin_shufflevector(w, w, 12, 13, 14, 15);
  v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
  return v[0] + v[1];
}

inline void prefetch_row(const float* row, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += 16) __builtin_prefetch(row + i, 0, 2);
}

// Number of a pair's targets that are processed at once, so that the word's row is read once for all of them.
constexpr std::size_t abreast = 3;
// Most scores that are computed before their gradients: enough that the exponentials fill vectors, and few enough that
// the rows stay in the L1 cache.
constexpr std::size_t together = 32;
// Rows are prefetched so many pairs ahead, and entries of the noise table so many draws ahead.
constexpr std::size_t pairs_ahead = 6, draws_ahead = 64;

// x[k] = in . row k + bias of row k, for N targets.
template <std::size_t N>
inline void scores(const float* in, const float* const* rows, const std::uint32_t* targets, std::size_t n,
                   float* x) noexcept {
  const float* out[N];
  vector16 by_16[N] = {};
  vector4 by_4[N] = {};
  for (std::size_t k = 0; k < N; ++k) {
    out[k] = rows[targets[k]];
    x[k] = out[k][n];
  }
  for_each_vector(n, [&](auto& a, std::size_t i) {
    load(a, in + i);
    for (std::size_t k = 0; k < N; ++k) {
      auto b = a;
      load(b, out[k] + i);
      if constexpr (sizeof a == sizeof(vector16))
        by_16[k] += a * b;
      else if constexpr (sizeof a == sizeof(vector4))
        by_4[k] += a * b;
      else
        x[k] += a * b;
    }
  });
  for (std::size_t k = 0; k < N; ++k) x[k] += sum(by_16[k], by_4[k]);
}

// Replaces each score in x by `scale` times the derivative of the loss by it, and returns the loss. `n` is a multiple
// of 16. sign[k] is -1 for a context, whose score training raises, 1 for noise, and 0 for a target that is ignored.
inline float score_gradients(float* x, const float* sign, std::size_t n, float scale) noexcept {
  float loss = 0;
  for (std::size_t k = 0; k < n; k += 16)
    for (std::size_t j = k; j < k + 16; ++j) {
      const float z = sign[j] * x[j]; // training makes it small
      const float e = std::exp(-std::fabs(z));
      loss += std::fabs(sign[j]) * (std::max(z, 0.0F) + std::log(1 + e)); // -log s(-z)
      x[j] = scale * sign[j] * (z > 0 ? 1 : e) / (1 + e);                 // s(z)
    }
  return loss;
}

// Adds the gradients of N targets; g[k] is the derivative of the loss by score k. The sum so far for the word is read
// from `from_in`. For a target it is read from its window or, if the row is not known yet, from `zeros`.
template <std::size_t N>
inline void add_gradients(const windows& w, const float* in, const float* from_in, float* to_in,
                          const std::uint32_t* targets, const float* g, const float* zeros,
                          std::uint8_t* known) noexcept {
  const std::size_t n = w.dim;
  const float *out[N], *from[N];
  float* to[N];
  for (std::size_t k = 0; k < N; ++k) {
    const std::uint32_t t = targets[k];
    out[k] = w.output[t];
    to[k] = w.output_gradients + t * (n + 1);
    from[k] = known[t] ? to[k] : zeros;
    known[t] = 1;
    to[k][n] = from[k][n] + g[k];
  }
  for_each_vector(n, [&](auto& sum, std::size_t i) {
    std::remove_reference_t<decltype(sum)> a, b;
    load(a, in + i);
    load(sum, from_in + i);
    for (std::size_t k = 0; k < N; ++k) {
      load(b, out[k] + i);
      sum += g[k] * b;
      load(b, from[k] + i);
      b += g[k] * a;
      store(to[k] + i, b);
    }
    store(to_in + i, sum);
  });
}

inline void prefetch_pair(const windows& w, const pairs& p, std::size_t i) noexcept {
  if (i >= p.words.size()) return;
  prefetch_row(w.input[p.words[i]], w.dim);
  for (std::size_t k = i * p.targets_each; k < (i + 1) * p.targets_each; ++k) {
    prefetch_row(w.output[p.targets[k]], w.dim + 1);
    prefetch_row(w.output_gradients + p.targets[k] * (w.dim + 1), w.dim + 1);
  }
}

void draw_loop(const alias_table& noise, std::uint64_t seed, std::uint64_t first_sample,
               std::span<const std::uint32_t> contexts, std::size_t negatives, std::uint32_t* targets) noexcept {
  std::uint64_t at = first_sample * negatives;
  for (const std::uint32_t context : contexts) {
    *targets++ = context;
    for (std::size_t k = 0; k < negatives; ++k, ++at) {
      noise.prefetch(noise_bits(seed, at + draws_ahead));
      *targets++ = noise.draw(noise_bits(seed, at));
    }
  }
}

void find_indices_loop(const row_set& set, std::span<const std::uint32_t> rows, std::uint32_t* indices) noexcept {
  for (const std::uint32_t row : rows) *indices++ = set.index_of(row);
}

double train_loop(const windows& w, const pairs& p, const float* zeros, known_rows known, float scale) noexcept {
  const std::size_t each = p.targets_each, at_once = std::max<std::size_t>(1, together / each);
  alignas(64) std::array<float, std::max(together, most_targets)> x, sign;
  double loss = 0;
  for (std::size_t first = 0; first < p.words.size(); first += at_once) {
    const std::size_t end = std::min(first + at_once, p.words.size());
    std::size_t count = 0;
    for (std::size_t i = first; i < end; ++i, count += each) {
      prefetch_pair(w, p, i + pairs_ahead);
      const std::uint32_t* of = p.targets.data() + i * each;
      const float* in = w.input[p.words[i]];
      std::size_t k = 0;
      for (; k + abreast <= each; k += abreast) scores<abreast>(in, w.output, of + k, w.dim, x.data() + count + k);
      for (; k < each; ++k) scores<1>(in, w.output, of + k, w.dim, x.data() + count + k);
      sign[count] = -1;
      for (k = 1; k < each; ++k) sign[count + k] = of[k] != of[0] ? 1 : 0; // noise that equals the context is ignored
    }
    for (; count % 16; ++count) x[count] = sign[count] = 0;
    loss += static_cast<double>(score_gradients(x.data(), sign.data(), count, scale));
    const float* g = x.data();
    for (std::size_t i = first; i < end; ++i, g += each) {
      const std::uint32_t *of = p.targets.data() + i * each, word = p.words[i];
      const float* in = w.input[word];
      float* to = w.input_gradients + word * w.dim;
      const float* from = known.input[word] ? to : zeros;
      known.input[word] = 1;
      std::size_t k = 0;
      for (; k + abreast <= each; k += abreast, from = to)
        add_gradients<abreast>(w, in, from, to, of + k, g + k, zeros, known.output);
      for (; k < each; ++k, from = to) add_gradients<1>(w, in, from, to, of + k, g + k, zeros, known.output);
    }
  }
  return loss;
}

} // namespace

void draw(const alias_table& noise, std::uint64_t seed, std::uint64_t first_sample,
          std::span<const std::uint32_t> contexts, std::size_t negatives, std::uint32_t* targets) noexcept {
  rg::simd::widest<draw_loop>(noise, seed, first_sample, contexts, negatives, targets);
}

void find_indices(const row_set& set, std::span<const std::uint32_t> rows, std::uint32_t* indices) noexcept {
  rg::simd::widest<find_indices_loop>(set, rows, indices);
}

double train(const windows& w, const pairs& p, const float* zeros, known_rows known, float scale) noexcept {
  return rg::simd::widest<train_loop>(w, p, zeros, known, scale);
}

} // namespace word2vec_parts

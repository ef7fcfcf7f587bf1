// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffast-math, so that sums over a row vectorise: results differ in their last bits between instruction
// sets, and nothing here tests for infinities.
#include "kernels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

// Compiled once per instruction set, as REGATTA_VECTORISED does in the engine.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__) &&                                  \
    !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define WORD2VEC_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default"), flatten))
#else
#define WORD2VEC_VECTORISED
#endif

namespace word2vec_parts {
namespace {

inline float dot(const float* a, const float* b, std::size_t n) noexcept {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

inline void prefetch_row(const float* row, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += 16) __builtin_prefetch(row + i);
}

// As many matches as are done together: their rows stay in the first-level cache, and their exponentials fill vectors.
constexpr std::size_t together = 32;
// How many rows, and draws of noise, ahead memory is asked for.
constexpr std::size_t rows_ahead = 4, draws_ahead = 64;

inline void scores(const windows& w, std::span<const match> matches, float* x) noexcept {
  for (const match& m : matches) {
    const float* row = w.output + m.target * (w.dim + 1);
    prefetch_row(row + rows_ahead * (w.dim + 1), w.dim + 1); // beyond the last one, it does no harm
    *x++ = dot(w.input + m.word * w.dim, row, w.dim) + row[w.dim];
  }
}

// Makes of scores the slopes of the loss in each, and returns the loss.
inline float slopes(float* x, const match* matches, std::size_t n, float scale) noexcept {
  float loss = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const float sign = matches[k].sign, z = sign * x[k]; // to be small
    const float e = std::exp(-std::fabs(z));
    loss += std::fabs(sign) * (std::max(z, 0.0F) + std::log(1 + e)); // -log s(-z)
    x[k] = scale * sign * (z > 0 ? 1 : e) / (1 + e);                 // s(z)
  }
  return loss;
}

// The gradients of one match: g is the slope of the loss in its score. `first`: the output's gradient holds nothing yet.
inline void add_gradients(const windows& w, const match& m, float g, bool first) noexcept {
  const std::size_t n = w.dim, at = m.target * (n + 1);
  const float *in = w.input + m.word * n, *out = w.output + at;
  float* __restrict to_in = w.input_gradients + m.word * n;
  float* __restrict to_out = w.output_gradients + at;
  prefetch_row(to_out + rows_ahead * (n + 1), n + 1);
  if (first) {
    for (std::size_t i = 0; i < n; ++i) {
      to_in[i] += g * out[i];
      to_out[i] = g * in[i];
    }
    to_out[n] = g;
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      to_in[i] += g * out[i];
      to_out[i] += g * in[i];
    }
    to_out[n] += g;
  }
}

} // namespace

WORD2VEC_VECTORISED void draw(const alias_table& noise, std::uint64_t seed, std::uint64_t first_sample,
                              std::span<const std::uint32_t> contexts, std::size_t negatives,
                              std::uint32_t* targets) noexcept {
  std::uint64_t at = first_sample * negatives;
  for (const std::uint32_t context : contexts) {
    *targets++ = context;
    for (std::size_t k = 0; k < negatives; ++k, ++at) {
      noise.prefetch(noise_bits(seed, at + draws_ahead));
      *targets++ = noise.draw(noise_bits(seed, at));
    }
  }
}

WORD2VEC_VECTORISED void find_places(const row_set& set, std::span<const std::uint32_t> rows,
                                     std::uint32_t* places) noexcept {
  for (const std::uint32_t row : rows) *places++ = set.place(row);
}

void order(std::span<const std::uint32_t> words, std::span<const std::uint32_t> targets, std::span<std::uint32_t> ends,
           match* matches) noexcept {
  const std::size_t n = targets.size() / words.size();
  std::fill(ends.begin(), ends.end(), 0);
  for (const std::uint32_t t : targets) ++ends[t];
  std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), 0U); // where they begin
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t* of = targets.data() + i * n;
    matches[ends[of[0]]++] = {of[0], words[i], -1};
    for (std::size_t k = 1; k < n; ++k) matches[ends[of[k]]++] = {of[k], words[i], of[k] != of[0] ? 1.0F : 0.0F};
  }
}

// By target, so that the outputs and their gradients, which fill the second-level cache, are read and written once, one
// after the other.
WORD2VEC_VECTORISED double train(const windows& w, std::span<const match> matches, float scale, bool add) noexcept {
  float x[together];
  double loss = 0;
  for (std::size_t done = 0; done < matches.size(); done += together) {
    const std::size_t n = std::min(together, matches.size() - done);
    const match* some = matches.data() + done;
    scores(w, {some, n}, x);
    loss += static_cast<double>(slopes(x, some, n, scale));
    for (std::size_t i = 0; i < n; ++i)
      add_gradients(w, some[i], x[i], !add && (done + i == 0 || some[i].target != matches[done + i - 1].target));
  }
  return loss;
}

} // namespace word2vec_parts

// SPDX-License-Identifier: Apache-2.0
//
// Compiled with -ffast-math, so that sums over a row vectorise: results differ in their last bits between instruction
// sets, and nothing here tests for infinities.
#include "kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

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

// y += a * x, where y holds something already, else y = a * x. Without a branch, which nobody could predict.
inline void add_row(float* __restrict y, float a, const float* __restrict x, std::size_t n,
                    std::uint8_t& written) noexcept {
  const std::uint32_t kept = written ? 0xffffffffU : 0;
  for (std::size_t i = 0; i < n; ++i) y[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(y[i]) & kept) + a * x[i];
  written = 1;
}

inline void prefetch_row(const float* row, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += 16) __builtin_prefetch(row + i);
}

// The rows of a pair whose turn will come, in `inputs` and `outputs`: the windows' weights or gradients. They lie
// anywhere in memory that is larger than the second-level cache.
inline void prefetch(const float* inputs, const float* outputs, std::size_t dim, const pairs& p,
                     std::size_t i) noexcept {
  if (i >= p.samples) return;
  prefetch_row(inputs + p.words[i] * dim, dim);
  for (std::size_t k = 0; k < p.n; ++k) prefetch_row(outputs + p.targets[i * p.n + k] * (dim + 1), dim + 1);
}

// As many pairs as are done together: their rows stay in the first-level cache, and their exponentials fill vectors.
constexpr std::size_t ahead = 2, most_scores = 128;
static_assert(most_scores >= most_targets);

inline void scores(const windows& w, const pairs& p, std::size_t first, std::size_t count, float* x) noexcept {
  for (std::size_t i = first; i < first + count; ++i) {
    prefetch(w.input, w.output, w.dim, p, i + ahead);
    const float* in = w.input + p.words[i] * w.dim;
    for (std::size_t k = 0; k < p.n; ++k) {
      const float* row = w.output + p.targets[i * p.n + k] * (w.dim + 1);
      *x++ = dot(in, row, w.dim) + row[w.dim];
    }
  }
}

// Makes of n scores the slopes of the loss in each, and returns the loss. `signs`: -1 for contexts, which are to score
// high, 1 for noise, 0 for what does not count.
inline float slopes(float* x, const float* signs, std::size_t n, float scale) noexcept {
  float loss = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const float sign = signs[k], z = sign * x[k]; // to be small
    const float e = std::exp(-std::fabs(z));
    loss += std::fabs(sign) * (std::max(z, 0.0F) + std::log(1 + e)); // -log s(-z)
    x[k] = scale * sign * (z > 0 ? 1 : e) / (1 + e);                 // s(z)
  }
  return loss;
}

inline void add_gradients(const windows& w, const pairs& p, std::size_t i, const float* g) noexcept {
  prefetch(w.input_gradients, w.output_gradients, w.dim, p, i + ahead);
  const std::uint32_t word = p.words[i];
  const float* in = w.input + word * w.dim;
  for (std::size_t k = 0; k < p.n; ++k) {
    const std::uint32_t target = p.targets[i * p.n + k];
    const std::size_t at = target * (w.dim + 1);
    add_row(w.input_gradients + word * w.dim, g[k], w.output + at, w.dim, w.input_written[word]);
    const std::uint8_t written = w.output_written[target];
    float& bias = w.output_gradients[at + w.dim];
    bias = (written ? bias : 0) + g[k];
    add_row(w.output_gradients + at, g[k], in, w.dim, w.output_written[target]);
  }
}

} // namespace

WORD2VEC_VECTORISED void draw(const alias_table& noise, std::uint64_t seed, std::uint64_t first_sample,
                              std::span<const std::uint32_t> contexts, std::size_t negatives,
                              std::uint32_t* targets) noexcept {
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    *targets++ = contexts[i];
    for (std::size_t k = 0; k < negatives; ++k)
      *targets++ = noise.draw(noise_bits(seed, (first_sample + i) * negatives + k));
  }
}

WORD2VEC_VECTORISED void find_places(const row_set& set, std::span<const std::uint32_t> rows,
                                     std::uint32_t* places) noexcept {
  for (const std::uint32_t row : rows) *places++ = set.place(row);
}

WORD2VEC_VECTORISED double train(const windows& w, const pairs& p, float scale) noexcept {
  float x[most_scores], signs[most_scores];
  const std::size_t together = most_scores / p.n;
  double loss = 0;
  for (std::size_t first = 0; first < p.samples; first += together) {
    const std::size_t count = std::min(together, p.samples - first);
    const std::uint32_t* targets = p.targets + first * p.n;
    for (std::size_t j = 0; j < count * p.n; ++j) {
      const std::size_t k = j % p.n;
      signs[j] = k == 0 ? -1 : targets[j] != targets[j - k] ? 1 : 0;
    }
    scores(w, p, first, count, x);
    loss += static_cast<double>(slopes(x, signs, count * p.n, scale));
    for (std::size_t i = 0; i < count; ++i) add_gradients(w, p, first + i, x + i * p.n);
  }
  return loss;
}

} // namespace word2vec_parts

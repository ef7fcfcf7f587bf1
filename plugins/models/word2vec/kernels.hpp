// SPDX-License-Identifier: Apache-2.0
//
// The loops of skip-gram over a batch's pairs. A pair is a word and its targets: the context, then `negatives` words of
// the noise. [any]
#pragma once

#include "noise.hpp"
#include "row_set.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace word2vec_parts {

constexpr std::size_t most_targets = 64;

// Windows of both tables and their gradients. An output row is `dim` weights and a bias.
struct windows {
  const float *input, *output;
  float *input_gradients, *output_gradients;
  std::uint8_t *input_written, *output_written; // by row: its gradient holds something already
  std::size_t dim;
};

// Places of rows in the windows: words [samples], targets [samples, n], the context first, n at most most_targets.
struct pairs {
  const std::uint32_t *words, *targets;
  std::size_t samples, n;
};

// Fills targets [samples, 1 + negatives]: each context, and noise that depends on the seed and the number of the sample.
void draw(const alias_table& noise, std::uint64_t seed, std::uint64_t first_sample,
          std::span<const std::uint32_t> contexts, std::size_t negatives, std::uint32_t* targets) noexcept;

// Where rows lie among those of `set`, each a member.
void find_places(const row_set& set, std::span<const std::uint32_t> rows, std::uint32_t* places) noexcept;

// Adds the gradients times `scale`; returns the sum over pairs of -log s(x_0) - sum log s(-x_k), where x_k = input row .
// output row + bias and s is the logistic function. Noise that is the context itself does not count.
double train(const windows& w, const pairs& p, float scale) noexcept;

} // namespace word2vec_parts

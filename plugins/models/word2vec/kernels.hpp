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

// Rows of both tables, each by its place, and windows of their gradients. An output row is `dim` weights and a bias.
struct windows {
  const float *const *input, *const *output;
  float *input_gradients, *output_gradients;
  std::size_t dim;
};

// By place: whether the gradient of a row holds something already, to which to add.
struct known_rows {
  std::uint8_t *input, *output;
};

// The places of words [samples] and targets [samples, targets_each], a word's context first.
struct pairs {
  std::span<const std::uint32_t> words, targets;
  std::size_t targets_each;
};

// Fills targets [samples, 1 + negatives]: each context, and noise that depends on the seed and the number of the sample.
void draw(const alias_table& noise, std::uint64_t seed, std::uint64_t first_sample,
          std::span<const std::uint32_t> contexts, std::size_t negatives, std::uint32_t* targets) noexcept;

// Where rows lie among those of `set`, each a member.
void find_places(const row_set& set, std::span<const std::uint32_t> rows, std::uint32_t* places) noexcept;

// Adds the gradients times `scale` to those of the rows that are known, sets those of the others, and makes them known.
// Noise that is the context itself does not count. zeros: dim + 1 of them. Returns the sum of -log s(x) of contexts and
// -log s(-x) of noise, where x = input row . output row + bias and s is the logistic function.
double train(const windows& w, const pairs& p, const float* zeros, known_rows known, float scale) noexcept;

} // namespace word2vec_parts

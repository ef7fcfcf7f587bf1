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
  std::size_t dim;
};

// A word beside one of its targets: their places in the windows, and what the score is to be: sign -1 for a context,
// which is to score high, 1 for noise, 0 for noise that is the context itself, which does not count.
struct match {
  std::uint32_t target, word;
  float sign;
};

// Fills targets [samples, 1 + negatives]: each context, and noise that depends on the seed and the number of the sample.
void draw(const alias_table& noise, std::uint64_t seed, std::uint64_t first_sample,
          std::span<const std::uint32_t> contexts, std::size_t negatives, std::uint32_t* targets) noexcept;

// Where rows lie among those of `set`, each a member.
void find_places(const row_set& set, std::span<const std::uint32_t> rows, std::uint32_t* places) noexcept;

// The matches of words [samples] and targets [samples, n], the context first, by target, those of one target in the order
// of the samples. ends [rows of the output window]: where each target's matches end.
void order(std::span<const std::uint32_t> words, std::span<const std::uint32_t> targets, std::span<std::uint32_t> ends,
           match* matches) noexcept;

// Adds the gradients times `scale` to those of the inputs. Those of the outputs it adds where `add` is set, else it sets
// those of the rows that are matched. Matches as order() made them. Returns the sum of -log s(-sign x), where x = input
// row . output row + bias and s is the logistic function.
double train(const windows& w, std::span<const match> matches, float scale, bool add) noexcept;

} // namespace word2vec_parts

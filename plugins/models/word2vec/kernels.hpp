// SPDX-License-Identifier: Apache-2.0
//
// Skip-gram's loops over the samples of a batch (Mikolov et al., Distributed representations of words and phrases,
// 2013). A sample is a word and its targets: the context, then `negatives` words of noise. [any], if calls at the same
// time write different memory.
#pragma once

#include "noise.hpp"
#include "row_set.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace word2vec_parts {

constexpr std::size_t most_targets = 64; // the largest pairs.targets_each

// Addresses of the rows of both tables by their numbers in the row sets of the batch, and the windows of their
// gradients: input [rows, dim], output [rows, dim + 1]. An output row is `dim` weights and a bias.
struct windows {
  const float *const *input, *const *output;
  float *input_gradients, *output_gradients;
  std::size_t dim;
};

// One byte per row, by its number in the set: not 0 if the gradient of the row already holds a sum, to which to add.
struct known_rows {
  std::uint8_t *input, *output;
};

// Numbers in the row sets (not rows of the table) of the words [samples] and of the targets [samples, targets_each], of
// which each sample's first is the context.
struct pairs {
  std::span<const std::uint32_t> words, targets;
  std::size_t targets_each;
};

// Fills targets [samples, 1 + negatives] with rows of the table: each context, followed by `negatives` rows of noise.
// They depend on `noise`, `seed`, `negatives` and the sample's number, which counts from `first_sample`; not on which
// samples are drawn together. Noise may equal the context.
void draw(const alias_table& noise, std::uint64_t seed, std::uint64_t first_sample,
          std::span<const std::uint32_t> contexts, std::size_t negatives, std::uint32_t* targets) noexcept;

// Writes the number of each row in `set` (row_set::index_of()) to indices [rows.size()]. Requires that all rows are
// members.
void find_indices(const row_set& set, std::span<const std::uint32_t> rows, std::uint32_t* indices) noexcept;

// Forward and backward pass over all pairs. Adds the gradients, times `scale`, to those of rows that `known` marks;
// overwrites those of other rows and marks them. Does not change weights. Noise that equals the context is ignored.
// `zeros` points to dim + 1 zeros, which are read as the start sum of rows that `known` does not mark. Returns the
// loss, not scaled: the sum of -log s(x) over contexts and -log s(-x) over noise, where x = input row . output row +
// bias and s is the logistic function. Loss and gradients differ in their last bits between instruction sets. Requires
// p.targets_each from 1 to 64, which is not checked.
double train(const windows& w, const pairs& p, const float* zeros, known_rows known, float scale) noexcept;

} // namespace word2vec_parts

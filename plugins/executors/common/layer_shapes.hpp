// SPDX-License-Identifier: Apache-2.0
//
// Reads the attributes of layers and checks them against the shapes of their inputs and outputs, alike for every
// executor. All functions throw rg::error, RG_E_CONFIG, with the layer's name, if it is inconsistent or has too few
// inputs. Functions named expect_... only check.
#pragma once

#include "graph.hpp"

#include <utility>

namespace executors {

class graph_compiler;

void expect_same_shape(const graph_compiler& c, const node& n); // of input 0 and output

// The window of a convolution or pooling; the same value for height and width. stride >= 1, padding < kernel.
struct window_shape {
  std::size_t kernel, stride, padding;
};
window_shape read_window(const graph_compiler& c, const node& n);

// Returns the probability that an element becomes 0, in [0, 1), and the number of the layer, for its random stream.
std::pair<double, std::uint32_t> read_dropout(const node& n);

// Attention; inputs 0 to 2 are queries, keys and values. Requires, unchecked, that they are sequences. The features
// divide into `heads`.
struct attention_shape {
  std::size_t heads;
  bool causal;
  double dropout;      // probability that an element becomes 0
  std::uint32_t layer; // of the dropout, for its random stream
};
attention_shape read_attention(const graph_compiler& c, const node& n);

// A lookup of the rows of ids, which concatenates them or sums them. Requires, unchecked, that `table` has two
// dimensions.
struct lookup_shape {
  std::size_t ids; // per sample
  bool sum;
  std::int64_t padding; // an id that counts as a row of zeros, or -1
};
lookup_shape read_lookup(const graph_compiler& c, const node& n, const graph_tensor& table);

// Input 0: one dimension of indices; output: [indices, features].
void expect_embedding(const graph_compiler& c, const node& n);
// At least one input, all vectors; the output is as long as all of them together.
void expect_concatenation(const graph_compiler& c, const node& n);
// Inputs 0 and 1: vectors of equal length; output: one element.
void expect_cosine(const graph_compiler& c, const node& n);
void expect_pair(const graph_compiler& c, const node& n); // inputs 0 and 1 are scalars
double read_smoothing(const node& n);                     // label smoothing, in [0, 1)
// Returns the buckets of the AUC metric, 2 to 10^6; input 0 must be the logits of two classes.
std::size_t read_buckets(const graph_compiler& c, const node& n);

} // namespace executors

// SPDX-License-Identifier: Apache-2.0
//
// Reads the attributes of layers and checks them against the shapes of their inputs, alike for every executor. All
// functions throw rg::error, RG_E_CONFIG, if a layer is inconsistent.
#pragma once

#include "graph.hpp"

#include <utility>

namespace executors {

class graph_compiler;

void expect_same_shape(const graph_compiler& c, const node& n); // of input and output

// A convolution or pooling; the same value for height and width.
struct window_shape {
  std::size_t kernel, stride, padding;
};
window_shape read_window(const graph_compiler& c, const node& n);

std::pair<double, std::uint32_t> read_dropout(const node& n); // probability, layer

// The inputs are queries, keys and values, each a sequence.
struct attention_shape {
  std::size_t heads;
  bool causal;
  double dropout; // probability
  std::uint32_t layer;
};
attention_shape read_attention(const graph_compiler& c, const node& n);

// Looks up the rows of ids; concatenates them or sums them.
struct lookup_shape {
  std::size_t ids; // per sample
  bool sum;
  std::int64_t padding; // an id that is skipped, or -1
};
lookup_shape read_lookup(const graph_compiler& c, const node& n, const graph_tensor& table);

void expect_embedding(const graph_compiler& c, const node& n);
void expect_concatenation(const graph_compiler& c, const node& n);
void expect_cosine(const graph_compiler& c, const node& n);
void expect_pair(const graph_compiler& c, const node& n); // of scalars
double read_smoothing(const node& n);
std::size_t read_buckets(const graph_compiler& c, const node& n); // buckets of the AUC metric

} // namespace executors

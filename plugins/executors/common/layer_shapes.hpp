// SPDX-License-Identifier: Apache-2.0
//
// What layers say of themselves, checked against what they read: the same in every executor. All throw rg::error,
// RG_E_CONFIG, where it cannot be.
#pragma once

#include "graph.hpp"

#include <utility>

namespace executors {

class graph_compiler;

void expect_same_shape(const graph_compiler& c, const node& n); // in and out

// A convolution or a pooling; square.
struct window_shape {
  std::size_t kernel, stride, padding;
};
window_shape read_window(const graph_compiler& c, const node& n);

std::pair<double, std::uint32_t> read_dropout(const node& n); // probability, layer

// Inputs: queries, keys and values, all of them sequences.
struct attention_shape {
  std::size_t heads;
  bool causal;
  double dropout; // probability
  std::uint32_t layer;
};
attention_shape read_attention(const graph_compiler& c, const node& n);

// Rows that ids name, one after the other or summed.
struct lookup_shape {
  std::size_t ids; // a sample
  bool sum;
  std::int64_t padding; // an id that stands for nothing, or -1
};
lookup_shape read_lookup(const graph_compiler& c, const node& n, const graph_tensor& table);

void expect_embedding(const graph_compiler& c, const node& n);
void expect_concatenation(const graph_compiler& c, const node& n);
void expect_cosine(const graph_compiler& c, const node& n);
void expect_pair(const graph_compiler& c, const node& n); // of numbers
double read_smoothing(const node& n);
std::size_t read_buckets(const graph_compiler& c, const node& n); // of the area under the curve

} // namespace executors

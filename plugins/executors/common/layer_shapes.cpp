// SPDX-License-Identifier: Apache-2.0
#include "layer_shapes.hpp"

#include "compiler.hpp"

#include <cmath>

namespace executors {

void expect_same_shape(const graph_compiler& c, const node& n) {
  n.expect(n.shape == c.source(n, 0).shape, "its output must have the shape of its input");
}

window_shape read_window(const graph_compiler& c, const node& n) {
  const std::vector<std::size_t>& in = c.source(n, 0).shape;
  n.expect(in.size() == 3 && n.shape.size() == 3, "needs an input and an output of 3 dimensions");
  const window_shape s{n.count("kernel"), n.count("stride"), n.count("padding")};
  const auto fits = [&](std::size_t d) {
    return in[d] + 2 * s.padding >= s.kernel && n.shape[d] == (in[d] + 2 * s.padding - s.kernel) / s.stride + 1;
  };
  n.expect(s.kernel >= 1 && s.stride >= 1 && s.padding < s.kernel && fits(1) && fits(2),
           "its output's size does not follow from kernel, stride and padding");
  return s;
}

std::pair<double, std::uint32_t> read_dropout(const node& n) {
  const double p = n.attr("p");
  n.expect(p >= 0 && p < 1, "p must be at least 0 and less than 1");
  return {p, static_cast<std::uint32_t>(n.count("layer"))};
}

attention_shape read_attention(const graph_compiler& c, const node& n) {
  const std::vector<std::size_t>&query = c.source(n, 0).shape, &key = c.source(n, 1).shape;
  const auto [p, layer] = read_dropout(n);
  const attention_shape s{n.count("heads"), n.attr("causal") != 0, p, layer};
  n.expect(n.shape == query && key == c.source(n, 2).shape && query[1] == key[1],
           "queries, keys and values do not fit together");
  n.expect(s.heads >= 1 && query[1] % s.heads == 0, "its features do not divide into heads");
  return s;
}

lookup_shape read_lookup(const graph_compiler& c, const node& n, const graph_tensor& table) {
  const std::vector<std::size_t>& ids = c.source(n, 0).shape;
  n.expect(ids.size() == 1 && n.shape.size() == 1, "needs an input and an output of one dimension");
  const bool sum = n.op == "embedding_bag";
  n.expect(n.shape[0] == (sum ? table.row() : ids[0] * table.row()),
           "its output's size does not follow from ids and table");
  const double padding = n.attr("padding");
  n.expect(padding == std::floor(padding) && padding >= -1 && padding < static_cast<double>(table.info.shape[0]),
           "the padding id must be -1 or a row of the table");
  return {ids[0], sum, static_cast<std::int64_t>(padding)};
}

void expect_embedding(const graph_compiler& c, const node& n) {
  const std::vector<std::size_t>& indices = c.source(n, 0).shape;
  n.expect(indices.size() == 1 && n.shape.size() == 2,
           "needs one dimension of indices and an output of two dimensions");
  n.expect(n.shape[0] == indices[0], "must have as many output positions as indices");
}

void expect_concatenation(const graph_compiler& c, const node& n) {
  n.expect(!n.inputs.empty(), "has too few inputs");
  std::size_t length = 0;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    n.expect(c.source(n, i).shape.size() == 1, "needs inputs of one dimension");
    length += c.source(n, i).shape[0];
  }
  n.expect(n.shape == std::vector{length}, "its output's length must be the sum of its inputs' lengths");
}

void expect_cosine(const graph_compiler& c, const node& n) {
  n.expect(c.source(n, 0).shape.size() == 1 && c.source(n, 0).shape == c.source(n, 1).shape,
           "needs two vectors of equal length");
  n.expect(n.elements() == 1, "must have one output element");
}

void expect_pair(const graph_compiler& c, const node& n) {
  for (std::size_t i = 0; i < 2; ++i) n.expect(c.source(n, i).elements() == 1, "compares two numbers");
}

double read_smoothing(const node& n) {
  const double smoothing = n.attr("smoothing");
  n.expect(smoothing >= 0 && smoothing < 1, "smoothing must be at least 0 and less than 1");
  return smoothing;
}

std::size_t read_buckets(const graph_compiler& c, const node& n) {
  n.expect(c.source(n, 0).shape == std::vector<std::size_t>{2}, "the area under the curve needs two logits");
  const std::size_t buckets = n.count("buckets");
  n.expect(buckets >= 2 && buckets <= 1'000'000, "needs 2 to 1000000 buckets");
  return buckets;
}

} // namespace executors

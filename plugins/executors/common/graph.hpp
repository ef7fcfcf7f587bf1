// SPDX-License-Identifier: Apache-2.0
//
// A network's nodes as an executor reads them, checked as far as one can without knowing their ops.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <regatta/model.hpp>

namespace executors {

struct node {
  std::string_view op;
  std::string name;
  std::vector<std::uint32_t> inputs, weights;
  std::vector<rg_attr> attrs;
  std::vector<std::size_t> shape;
  std::vector<std::size_t> consumers; // nodes
  bool done = false;                  // part of an op already

  [[noreturn]] void fail(const std::string& why) const {
    throw rg::error(RG_E_CONFIG, "layer " + name + " (" + std::string(op) + "): " + why);
  }
  void expect(bool holds, const char* what) const {
    if (!holds) fail(what);
  }
  double attr(const char* key) const {
    for (const rg_attr& a : attrs)
      if (key == std::string_view(a.name)) return a.number;
    fail("attribute " + std::string(key) + " is missing");
  }
  std::size_t count(const char* key) const {
    const double d = attr(key);
    expect(d >= 0 && d <= 1e9 && d == std::floor(d), "an attribute is no whole number");
    return static_cast<std::size_t>(d);
  }
  std::size_t elements() const {
    std::size_t n = 1;
    for (std::size_t d : shape) n *= d;
    return n;
  }
};

// Throws rg::error, RG_E_CONFIG, where nodes contradict each other.
inline std::vector<node> read_nodes(const rg_graph& g) {
  std::vector<node> nodes(g.node_count);
  for (std::uint32_t k = 0; k < g.node_count; ++k) {
    const auto raw = rg::copy_versioned(rg::at_stride(g.nodes, k));
    node& n = nodes[k];
    n.op = raw.op ? raw.op : "";
    n.name = raw.name ? raw.name : "";
    n.inputs.assign(raw.inputs, raw.inputs + raw.input_count);
    n.weights.assign(raw.weights, raw.weights + raw.weight_count);
    n.attrs.assign(raw.attrs, raw.attrs + raw.attr_count);
    n.expect(raw.ndim <= RG_MAX_DIMS, "has too many dimensions");
    for (std::uint32_t d = 0; d < raw.ndim; ++d) {
      n.expect(raw.shape[d] > 0 && raw.shape[d] <= 1'000'000'000, "has a dimension that is not positive");
      n.shape.push_back(static_cast<std::size_t>(raw.shape[d]));
    }
    for (std::uint32_t i : n.inputs) {
      n.expect(i < k, "reads a node that does not come before it");
      nodes[i].consumers.push_back(k);
    }
    for (std::uint32_t w : n.weights) n.expect(w < g.tensor_count, "has a weight that does not exist");
    n.expect((n.op == "input") == (k < g.input_count), "inputs come first, and only they");
  }
  return nodes;
}

} // namespace executors

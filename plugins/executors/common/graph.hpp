// SPDX-License-Identifier: Apache-2.0
//
// A graph's nodes and tensors as an executor reads them, with the checks that need no knowledge of its ops.
#pragma once

#include "lookups.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <regatta/model.hpp>

namespace executors {

// A node of the graph. op and the names of attrs refer to the graph's texts.
struct node {
  std::string_view op;
  std::string name;
  std::vector<std::uint32_t> inputs, weights; // indices of earlier nodes; indices into rg_graph.tensors
  std::vector<rg_attr> attrs;
  std::vector<std::size_t> shape;     // of the output of one sample
  std::vector<std::size_t> consumers; // numbers of the nodes that read this one, once per input
  bool done = false;                  // compiled, by itself or into the op of an earlier node
  bool is_loss = false;               // its op is a loss; set when that op is compiled

  // Throws rg::error, RG_E_CONFIG, with the node's name; so do expect(), attr() and count() if they fail.
  [[noreturn]] void fail(const std::string& why) const {
    throw rg::error(RG_E_CONFIG, "layer " + name + " (" + std::string(op) + "): " + why);
  }
  void expect(bool holds, const char* what) const {
    if (!holds) fail(what);
  }
  // Returns an attribute, which must exist.
  double attr(const char* key) const {
    for (const rg_attr& a : attrs)
      if (key == std::string_view(a.name)) return a.number;
    fail("attribute " + std::string(key) + " is missing");
  }
  // Returns an attribute that must be a whole number of 0 to 10^9.
  std::size_t count(const char* key) const {
    const double d = attr(key);
    expect(d >= 0 && d <= 1e9 && d == std::floor(d), "an attribute must be a whole number from 0 to 1e9");
    return static_cast<std::size_t>(d);
  }
  // Elements of the output of one sample.
  std::size_t elements() const {
    std::size_t n = 1;
    for (std::size_t d : shape) n *= d;
    return n;
  }
};

// A tensor of the model. The engine or the executor owns its memory; that of a sparse table holds the rows of the
// current step.
struct graph_tensor {
  rg_tensor info{};
  std::string name;
  std::uint32_t graph_index = 0; // in rg_graph.tensors; its initial values depend on it (rg::initial_values)
  std::uint32_t index = 0;       // in rg_model_info
  std::size_t elements = 1;
  static constexpr std::size_t unused = ~std::size_t{0};
  std::size_t first_op = unused;              // the lowest number of an op that uses it
  std::size_t last_op = 0;                    // the highest
  float *data = nullptr, *gradient = nullptr; // the memory that ops use; null until the engine or executor provides it
  std::unique_ptr<sparse_table> sparse;       // null: not a sparse table

  [[noreturn]] void fail(const std::string& why) const { throw rg::error(RG_E_CONFIG, "tensor " + name + ": " + why); }
  // Elements of a row. Requires two dimensions.
  std::size_t row() const { return static_cast<std::size_t>(info.shape[1]); }
  // Whether it is a sparse table or a dense tensor of two dimensions.
  bool is_table() const { return info.kind != RG_TENSOR_STATE && info.ndim == 2; }
  // Whether it is a dense tensor of two dimensions with this number of columns.
  bool is_matrix(std::size_t columns) const { return info.kind == RG_TENSOR_DENSE && is_table() && row() == columns; }
  // Whether it has this kind (RG_TENSOR_...) and shape.
  bool is(std::uint32_t kind, const std::vector<std::size_t>& shape) const;
  // Whether this tensor stands before `other` in rg_model_info: dense tensors before sparse tables and states (by the
  // numbers of their kinds in abi.h), and within a kind in the order in which gradients become ready. A gradient is
  // ready once the backward pass has reached first_op, so the highest first_op comes first.
  bool comes_before(const graph_tensor& other) const {
    return info.kind != other.info.kind ? info.kind < other.info.kind : first_op > other.first_op;
  }
};

// Returns the graph's nodes. They refer to texts of `g`, which must outlive them. Throws rg::error: RG_E_UNSUPPORTED if
// a node has an attribute that is not in reference::known_attributes or is no number; RG_E_CONFIG if a node has an
// invalid shape, reads a node that does not come before it or a tensor that does not exist, or if the inputs are not
// the first nodes.
std::vector<node> read_nodes(const rg_graph& g);
// Returns tensor `number` of the graph, with its name copied and info.storage set to its number of elements, as in
// canonical layout. `number` must be less than g.tensor_count. Throws rg::error, RG_E_CONFIG, if its shape or kind is
// invalid.
graph_tensor read_tensor(const rg_graph& g, std::uint32_t number);

} // namespace executors

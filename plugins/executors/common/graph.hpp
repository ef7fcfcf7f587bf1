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

struct node {
  std::string_view op;
  std::string name;
  std::vector<std::uint32_t> inputs, weights;
  std::vector<rg_attr> attrs;
  std::vector<std::size_t> shape;
  std::vector<std::size_t> consumers; // numbers of the nodes that read this one
  bool done = false;                  // an op computes this node already
  bool is_loss = false;               // set once the node is done

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

// A tensor of the model. The engine or the executor owns its memory; that of a sparse table holds the rows of the
// current step.
struct graph_tensor {
  rg_tensor info{};
  std::string name;
  std::uint32_t graph_index = 0; // key of the random numbers of its initial values
  std::uint32_t index = 0;       // in rg_model_info
  std::size_t elements = 1;
  static constexpr std::size_t unused = ~std::size_t{0};
  std::size_t first_op = unused;              // the lowest number of an op that uses it
  float *data = nullptr, *gradient = nullptr; // that ops use
  std::unique_ptr<sparse_table> sparse;       // null: not a sparse table

  [[noreturn]] void fail(const std::string& why) const { throw rg::error(RG_E_CONFIG, "tensor " + name + ": " + why); }
  std::size_t row() const { return static_cast<std::size_t>(info.shape[1]); } // elements of a matrix row
  bool is_table() const { return info.kind != RG_TENSOR_STATE && info.ndim == 2; }
  bool is_matrix(std::size_t columns) const { return info.kind == RG_TENSOR_DENSE && is_table() && row() == columns; }
  bool is(std::uint32_t kind, const std::vector<std::size_t>& shape) const;
  // The order in which gradients become ready: by the first op that uses a tensor, from the last op to the first. Kinds
  // are compared by their numbers in abi.h, which puts sparse tables and states after dense tensors.
  bool comes_before(const graph_tensor& other) const {
    return info.kind != other.info.kind ? info.kind < other.info.kind : first_op > other.first_op;
  }
};

// Throws rg::error, RG_E_CONFIG, if nodes are inconsistent.
std::vector<node> read_nodes(const rg_graph& g);
// Throws rg::error, RG_E_CONFIG, if the tensor's shape or kind is invalid.
graph_tensor read_tensor(const rg_graph& g, std::uint32_t number);

} // namespace executors

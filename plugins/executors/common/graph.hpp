// SPDX-License-Identifier: Apache-2.0
//
// A network's nodes and tensors as an executor reads them, checked as far as one can without knowing its ops.
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
  std::vector<std::size_t> consumers; // nodes
  bool done = false;                  // part of an op already
  bool is_loss = false;               // once done

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

// A tensor of the network. Its memory is the engine's or the executor's own; a sparse table's holds the rows of the
// current step.
struct graph_tensor {
  rg_tensor info{};
  std::string name;
  std::uint32_t graph_index = 0; // random numbers are drawn by this
  std::uint32_t index = 0;       // in rg_model_info
  std::size_t elements = 1;
  static constexpr std::size_t unused = ~std::size_t{0};
  std::size_t first_op = unused;              // the first one that uses it, by its number
  float *data = nullptr, *gradient = nullptr; // where ops find them
  std::unique_ptr<sparse_table> sparse;       // null: it is none

  [[noreturn]] void fail(const std::string& why) const { throw rg::error(RG_E_CONFIG, "tensor " + name + ": " + why); }
  std::size_t row() const { return static_cast<std::size_t>(info.shape[1]); } // elements of a row, of matrices
  bool is_table() const { return info.kind != RG_TENSOR_STATE && info.ndim == 2; }
  bool is_matrix(std::size_t columns) const { return info.kind == RG_TENSOR_DENSE && is_table() && row() == columns; }
  bool is(std::uint32_t kind, const std::vector<std::size_t>& shape) const;
  // In the order in which gradients become ready: that of the first op that uses them, from the last to the first. Kinds
  // as abi.h numbers them: sparse tables and states follow.
  bool comes_before(const graph_tensor& other) const {
    return info.kind != other.info.kind ? info.kind < other.info.kind : first_op > other.first_op;
  }
};

// Throws rg::error, RG_E_CONFIG, where nodes contradict each other.
std::vector<node> read_nodes(const rg_graph& g);
// Throws rg::error, RG_E_CONFIG, for a tensor that cannot be.
graph_tensor read_tensor(const rg_graph& g, std::uint32_t number);

} // namespace executors

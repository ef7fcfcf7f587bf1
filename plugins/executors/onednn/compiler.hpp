// SPDX-License-Identifier: Apache-2.0
//
// What the functions that compile ops share. compile.cpp has the table of ops; a file compile_*.cpp has those of one
// concern.
#pragma once

#include "../common/compiler.hpp"
#include "../common/layer_shapes.hpp"
#include "program.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onednn {

using executors::node;

class compiler;

// Makes an op of node k, or of it and some that follow, which are then done: emits it and sets the nodes' values.
using compile_function = void (*)(compiler& c, std::size_t k);
struct compile_rule {
  std::string_view op;
  compile_function compile;
};

std::span<const compile_rule> dense_rules();    // compile_dense.cpp: of vectors and sequences
std::span<const compile_rule> blocked_rules();  // compile_blocked.cpp: images and vectors of features
std::span<const compile_rule> sequence_rules(); // compile_sequence.cpp: places and their features
std::span<const compile_rule> loss_rules();     // compile_loss.cpp
std::span<const compile_rule> sparse_rules();   // compile_sparse.cpp: tables, and models of what is looked up in them

// The function that an op of that name applies to every element; none where it does something else.
row_function function_named(std::string_view op);

class compiler : public executors::graph_compiler {
public:
  compiler(const rg_graph& graph, program& p);
  void run();

  const device& dev() const { return program_.dev; }
  std::size_t lanes() const { return dev().kernels->lanes; }

  // Weight number i of n; its shape and kind must be these.
  weight* tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape,
                 std::uint32_t kind = RG_TENSOR_DENSE);
  // The same for a matrix with any number of rows.
  weight* matrix(const node& n, std::size_t i, std::size_t columns);
  // Weight number i of n, a table for lookups: sparse or dense.
  weight* table(const node& n, std::size_t i);

  // The output of node k. Null where an op that took it in keeps it to itself.
  value*& output(std::size_t k) { return values_[k]; }
  // Input i of n in floats: blocked, or row-major if the batch brings it so.
  value* input(const node& n, std::size_t i);
  // Input i of n in floats, blocked.
  value* blocked(const node& n, std::size_t i);
  // Input i of n, blocked, in floats or bf16 as it was made: for ops that take both.
  value* either(const node& n, std::size_t i);
  // The value as one of bf16 or of floats.
  value* as_type(value* v, bool half);
  // Input i of n, which must be an input of the network, one whole number for each of `elements`.
  value* indices(const node& n, std::size_t i, std::size_t elements);
  value* make_value(const std::string& name, const std::vector<std::size_t>& shape, bool plain = false);
  // The output of node k, of its shape.
  value* make_output(std::size_t k, bool half) {
    values_[k] = make_value(nodes_[k].name, nodes_[k].shape);
    values_[k]->half = half;
    return values_[k];
  }
  std::size_t round_up(std::size_t channels) const { return (channels + lanes() - 1) / lanes() * lanes(); }

  template <class Op, class... A> Op* emit(A&&... a) {
    auto o = std::make_unique<Op>(std::forward<A>(a)...);
    Op* raw = o.get();
    if constexpr (std::is_base_of_v<loss, Op>) program_.add(*raw);
    add(std::move(o));
    return raw;
  }

  // The bias of node k, null where it has none; left to a batch norm that is all that follows.
  weight* bias_of(std::size_t k, std::size_t outputs);
  // The bias that batch norm k has been left, or null.
  weight* folded(std::size_t k) const;

private:
  void compile_node(std::size_t k) override;
  weight* weight_of(const node& n, std::size_t i) const;
  void add_input(std::size_t k);
  void add(std::unique_ptr<op> o);

  program& program_;
  std::vector<value*> values_;            // by node
  std::map<value*, value*> blocked_;      // row-major inputs and their blocked copies
  std::map<value*, value*> converted_;    // values and their copies of the other type
  std::map<std::size_t, weight*> folded_; // by batch norm
  std::vector<std::unique_ptr<weight>> tensors_;
};

} // namespace onednn

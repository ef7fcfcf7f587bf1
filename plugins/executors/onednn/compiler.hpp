// SPDX-License-Identifier: Apache-2.0
//
// Declarations that all compile functions share. compile.cpp finds the rule of an op; each file compile_*.cpp has the
// rules of one group of ops.
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

// Compiles node k: emits an op and sets the outputs of the nodes that the op computes. Nodes after k that it fuses are
// marked as done.
using compile_function = void (*)(compiler& c, std::size_t k);
struct compile_rule {
  std::string_view op;
  compile_function compile;
};

std::span<const compile_rule> dense_rules();    // compile_dense.cpp: vectors and sequences
std::span<const compile_rule> blocked_rules();  // compile_blocked.cpp: images and vectors of features
std::span<const compile_rule> sequence_rules(); // compile_sequence.cpp: positions and their features
std::span<const compile_rule> loss_rules();     // compile_loss.cpp
std::span<const compile_rule> sparse_rules();   // compile_sparse.cpp: lookups in tables, and ops on the vectors found

// The elementwise function of an op of that name; none for other ops.
row_function function_named(std::string_view op);

class compiler : public executors::graph_compiler {
public:
  compiler(const rg_graph& graph, program& p);
  void run();

  const device& dev() const { return program_.dev; }
  std::size_t lanes() const { return dev().kernels->lanes; }

  // Weight i of n, which must have this shape and kind.
  weight* tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape,
                 std::uint32_t kind = RG_TENSOR_DENSE);
  // Weight i of n, which must be a matrix with this number of columns.
  weight* matrix(const node& n, std::size_t i, std::size_t columns);
  // Weight i of n, which must be a table for lookups: sparse or dense.
  weight* table(const node& n, std::size_t i);

  // The output of node k. Null where an op fused node k and does not store its output, and for a sum of losses.
  value*& output(std::size_t k) { return values_[k]; }
  // Input i of n, in the type and layout in which it was computed. Fails with RG_E_CONFIG if it is not stored.
  value* stored(const node& n, std::size_t i);
  // Input i of n in fp32: blocked, or row-major if the batch supplies it so.
  value* input(const node& n, std::size_t i);
  // Input i of n in fp32, blocked.
  value* blocked(const node& n, std::size_t i);
  // Input i of n, blocked, in the type in which it was computed, fp32 or bf16: for ops that accept both.
  value* either(const node& n, std::size_t i);
  // The value in bf16 (`half`) or in fp32; emits one conversion per value where its type differs.
  value* as_type(value* v, bool half);
  // Input i of n, which must be an input of the network with `elements` whole numbers per sample.
  value* indices(const node& n, std::size_t i, std::size_t elements);
  value* make_value(const std::string& name, const std::vector<std::size_t>& shape, bool plain = false);
  // Creates the output of node k, with the node's shape.
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

  // Returns the bias of node k, or null if it has none. Also null if the node's only consumer is a batch norm and no
  // other node uses the bias: folded() of the batch norm then returns it.
  weight* bias_of(std::size_t k, std::size_t outputs);
  // The bias that the layer before batch norm k leaves to it, or null.
  weight* folded(std::size_t k) const;

private:
  void compile_node(std::size_t k) override;
  weight* weight_of(const node& n, std::size_t i) const;
  void add_input(std::size_t k);
  void add(std::unique_ptr<op> o);

  program& program_;
  std::vector<value*> values_;            // by node
  std::map<value*, value*> blocked_;      // row-major values to their blocked copies
  std::map<value*, value*> converted_;    // values to their copies in the other type
  std::map<std::size_t, weight*> folded_; // by batch norm
  std::vector<std::unique_ptr<weight>> tensors_;
};

} // namespace onednn

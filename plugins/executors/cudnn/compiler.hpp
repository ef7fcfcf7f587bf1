// SPDX-License-Identifier: Apache-2.0
//
// The interface that the compile functions of ops share. compile.cpp implements the compiler; each compile_*.cpp has
// the ops of one kind.
#pragma once

#include "../common/compiler.hpp"
#include "../common/layer_shapes.hpp"
#include "program.hpp"

#include <map>
#include <span>
#include <string_view>

namespace cudnn {

using executors::node;
class compiler;

// Compiles node k, or k and some nodes that follow it, to an op: emits the op, sets the nodes' values and marks the
// nodes as done.
using compile_function = void (*)(compiler& c, std::size_t k);
struct compile_rule {
  std::string_view op;
  compile_function compile;
};
std::span<const compile_rule> layer_rules();    // compile_layers.cpp: images, vectors, elementwise ops
std::span<const compile_rule> sequence_rules(); // compile_sequence.cpp: sequences and tables
std::span<const compile_rule> loss_rules();     // compile_loss.cpp

class compiler : public executors::graph_compiler {
public:
  compiler(const rg_graph& graph, program& p);
  void run();

  // Returns weight i of n. Throws rg::error, RG_E_CONFIG, unless it has this shape and kind. multiplied(): for a weight
  // that a GEMM or convolution reads; reduced precision keeps a copy of it.
  weight* tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape,
                 std::uint32_t kind = RG_TENSOR_DENSE);
  weight* multiplied(const node& n, std::size_t i, const std::vector<std::size_t>& shape);
  weight* matrix(const node& n, std::size_t i, std::size_t columns); // with any number of rows
  weight* table(const node& n, std::size_t i);                       // for lookups: sparse or dense

  value*& output(std::size_t k) { return values_[k]; } // the value of node k
  // Returns floating-point input i of n, in the model's precision and in the layout that ops expect.
  value* input(const node& n, std::size_t i);
  // Returns input i of n, which must be an input of the network with one int32 for each of `elements`.
  value* indices(const node& n, std::size_t i, std::size_t elements);
  value* make_value(const std::string& name, const std::vector<std::size_t>& shape);
  value* make_output(std::size_t k) { return values_[k] = make_value(nodes_[k].name, nodes_[k].shape); }

  template <class Op, class... A> Op* emit(A&&... a) {
    auto o = std::make_unique<Op>(std::forward<A>(a)...);
    Op* raw = o.get();
    if constexpr (std::is_base_of_v<loss, Op>) program_.add(*raw);
    add(std::move(o));
    return raw;
  }

private:
  void compile_node(std::size_t k) override;
  weight* weight_of(const node& n, std::size_t i) const;
  void add_input(std::size_t k);
  void add(std::unique_ptr<op> o);
  void order_gradients();

  program& program_;
  std::vector<value*> values_;         // by node number
  std::map<value*, value*> converted_; // from an input of the network to its copy in the model's precision and layout
  std::vector<std::unique_ptr<weight>> tensors_;
};

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// What the functions that compile ops share. compile.cpp has the compiler; a file compile_*.cpp has the ops of one
// concern.
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

// Makes an op of node k, or of it and some that follow, which are then done: emits it and sets the nodes' values.
using compile_function = void (*)(compiler& c, std::size_t k);
struct compile_rule {
  std::string_view op;
  compile_function compile;
};
std::span<const compile_rule> layer_rules();    // compile_layers.cpp: pictures, vectors, what goes element by element
std::span<const compile_rule> sequence_rules(); // compile_sequence.cpp: sequences and tables
std::span<const compile_rule> loss_rules();     // compile_loss.cpp

class compiler : public executors::graph_compiler {
public:
  compiler(const rg_graph& graph, program& p);
  void run();

  // Weight number i of n; its shape and kind must be these. `multiplied`: by a product or convolution, for which reduced
  // precision has a copy.
  weight* tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape,
                 std::uint32_t kind = RG_TENSOR_DENSE);
  weight* multiplied(const node& n, std::size_t i, const std::vector<std::size_t>& shape);
  weight* matrix(const node& n, std::size_t i, std::size_t columns); // of any number of rows
  weight* table(const node& n, std::size_t i);                       // for lookups: sparse or dense

  value*& output(std::size_t k) { return values_[k]; } // of node k
  value* input(const node& n, std::size_t i);          // numbers of the type computed in, lying as ops want them
  // An input of the network, one whole number for each of `elements`.
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
  std::vector<value*> values_;         // by node
  std::map<value*, value*> converted_; // inputs as they come, and as ops want them
  std::vector<std::unique_ptr<weight>> tensors_;
};

} // namespace cudnn

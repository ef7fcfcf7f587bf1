// SPDX-License-Identifier: Apache-2.0
//
// The interface that the compile functions of ops share.
#pragma once

#include "../common/compiler.hpp"
#include "../common/layer_shapes.hpp"
#include "runtime/program.hpp"

#include <map>
#include <optional>

#include <regatta/ext/graph.h>

namespace cudnn {

using executors::node;
class compiler;

// Compiles node k, or k and nodes that follow it and are fused, to an op: emits the op, sets the value of the last of
// these nodes and marks the fused ones as done. Emits no op if the output is the input's memory (value::alias). Throws
// rg::error, RG_E_CONFIG, if a node is inconsistent.
using compile_function = void (*)(compiler& c, std::size_t k);
// In the file of the op: compile/convolution.cpp, compile/dense.cpp, compile/normalization.cpp, ...
void compile_convolution(compiler& c, std::size_t k);
void compile_dense(compiler& c, std::size_t k);
void compile_batch_norm(compiler& c, std::size_t k);
void compile_layer_norm(compiler& c, std::size_t k);
void compile_map(compiler& c, std::size_t k);
void compile_addition(compiler& c, std::size_t k);
void compile_flatten(compiler& c, std::size_t k);
void compile_concatenation(compiler& c, std::size_t k);
void compile_dropout(compiler& c, std::size_t k);
void compile_pooling(compiler& c, std::size_t k);
void compile_global_average(compiler& c, std::size_t k);
void compile_channel_scale(compiler& c, std::size_t k);
void compile_cosine(compiler& c, std::size_t k);
void compile_select_positions(compiler& c, std::size_t k);
void compile_embedding(compiler& c, std::size_t k);
void compile_lookup(compiler& c, std::size_t k);
void compile_attention(compiler& c, std::size_t k);
void compile_cross_entropy(compiler& c, std::size_t k);
void compile_token_loss(compiler& c, std::size_t k);
void compile_auc(compiler& c, std::size_t k);
void compile_hinge(compiler& c, std::size_t k);

// If the only consumer of node k is an elementwise function, returns the function, marks the consumer as done and sets
// k to it; else returns none. Throws rg::error, RG_E_CONFIG, if the consumer has another shape than node k.
std::optional<function> fused_function(compiler& c, std::size_t& k);
// Returns input i of n, and throws rg::error, RG_E_CONFIG, unless it is a sequence: positions and features.
value* sequence_input(compiler& c, const node& n, std::size_t i);

// Compiles one graph to one program. The program owns the values and ops that the functions return, and after run() the
// weights.
class compiler : public executors::graph_compiler {
public:
  // Reads nodes and tensors. Requires that p.computes and p.batch are set, and that p is otherwise empty. `graph` and p
  // must outlive this object. Throws rg::error: RG_E_CONFIG if a node or a tensor is inconsistent, RG_E_UNSUPPORTED for
  // an attribute that the executor does not know.
  compiler(const rg_graph& graph, program& p);
  // Compiles all nodes; called once. Throws rg::error: RG_E_UNSUPPORTED for an op that this executor lacks, RG_E_CONFIG
  // if the graph is inconsistent.
  void run();

  // Each of these returns weight i of n, and throws rg::error, RG_E_CONFIG, if n has too few weights or it is of
  // another shape or kind. tensor(): of exactly this shape and kind. gemm_weight(): dense, and read by a GEMM or
  // convolution at weight::gemm_operand(): the weight itself, or a copy that the program keeps if the model's precision
  // or layout is not that of the weight.
  weight* tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape,
                 std::uint32_t kind = RG_TENSOR_DENSE);
  weight* gemm_weight(const node& n, std::size_t i, const std::vector<std::size_t>& shape);
  weight* matrix(const node& n, std::size_t i, std::size_t columns); // dense [any number, columns]
  weight* table(const node& n, std::size_t i);                       // for lookups: two dimensions, sparse or dense

  // The value of node k; null while the node is not compiled, and for good if a fused op keeps the value to itself.
  value*& output(std::size_t k) { return values_[k]; }
  // Returns floating-point input i of n, in the model's precision and in the layout that ops expect; for an input of
  // the network this may emit a conversion. Throws rg::error, RG_E_CONFIG, if there is no such input, it is not
  // floating-point, or a fused op keeps it to itself.
  value* input(const node& n, std::size_t i);
  // Returns input i of n. Throws rg::error, RG_E_CONFIG, unless that is an input of the network, of type RG_I32, with
  // `elements` elements per sample.
  value* indices(const node& n, std::size_t i, std::size_t elements);
  // Adds a value of the model's precision; `shape`: of one sample. make_output(): as the value of node k.
  value* make_value(const std::string& name, const std::vector<std::size_t>& shape);
  value* make_output(std::size_t k);

  // Appends Op(a...) to the program, behind the ops emitted so far, and sets op::batch and which values need gradients.
  // A loss is also added to the program's losses.
  template <class Op, class... A> Op* emit(A&&... a) {
    auto o = std::make_unique<Op>(std::forward<A>(a)...);
    Op* raw = o.get();
    if constexpr (std::is_base_of_v<loss, Op>) program_.add(*raw);
    add(std::move(o));
    return raw;
  }

private:
  void compile_node(std::size_t k) override;
  // Returns weight i of n.
  weight* weight_of(const node& n, std::size_t i) const;
  // Makes the value of input k of the network.
  void add_input(std::size_t k);
  // Appends an op to the program, and sets what its values and weights record of it.
  void add(std::unique_ptr<op> o);
  // Sets edge::add of all inputs of all ops.
  void order_gradients();

  program& program_;
  std::string kind_;                   // op of the node that is being compiled
  std::vector<value*> values_;         // by node number
  std::map<value*, value*> converted_; // from an input of the network to its copy in the model's precision and layout
  std::vector<std::unique_ptr<weight>> tensors_;
};

} // namespace cudnn

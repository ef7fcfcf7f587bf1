// SPDX-License-Identifier: Apache-2.0
//
// Translates a graph to a program. Each file of this folder compiles one group of the graph's ops.
#pragma once

#include "../common/compiler.hpp"
#include "../common/layer_shapes.hpp"
#include "runtime/program.hpp"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <regatta/ext/graph.h>

namespace onednn {

using executors::node;

class compiler;

// Translates the graph's nodes into values, weights and ops of `p`, and sets the layouts of the weights. Requires a `p`
// of which only `dev` and `batch` are set. Nodes are fused where that saves a pass over memory. The ops can run only
// after op::prepare() and plan_memory(). `graph` is not read after the call. Throws RG_E_CONFIG if the graph is
// inconsistent, and RG_E_UNSUPPORTED for an op or an attribute that it does not know.
void compile(const rg_graph& graph, program& p);

// Each function compiles node k: it emits an op, if one is needed, and sets output() of the last node that the op
// computes. It sets node::done of the nodes after k that it fuses. Throws RG_E_CONFIG if a node is inconsistent. The
// table in compiler.cpp says which function compiles which op.
void compile_attention(compiler& c, std::size_t k);
void compile_convolution(compiler& c, std::size_t k);
void compile_dense(compiler& c, std::size_t k);
void compile_cosine(compiler& c, std::size_t k);
void compile_select_positions(compiler& c, std::size_t k); // sequence.cpp
void compile_channel_scale(compiler& c, std::size_t k);    // squeeze_excite.cpp
// embedding.cpp
void compile_embedding(compiler& c, std::size_t k); // of tokens, with their positions
void compile_lookup(compiler& c, std::size_t k);    // of ids, in a sparse or dense table
// elementwise.cpp
void compile_add(compiler& c, std::size_t k);
void compile_concat(compiler& c, std::size_t k);
void compile_flatten(compiler& c, std::size_t k);
void compile_elementwise(compiler& c, std::size_t k); // of a sequence, not fused into a dense layer
void compile_sigmoid(compiler& c, std::size_t k);
void compile_softsign(compiler& c, std::size_t k);
// loss.cpp
void compile_auc(compiler& c, std::size_t k);
void compile_cross_entropy(compiler& c, std::size_t k);
void compile_hinge(compiler& c, std::size_t k);
void compile_token_loss(compiler& c, std::size_t k);
// normalization.cpp: also of ReLU, dropout and additions by themselves, which are stages of the same ops
void compile_batch_norm(compiler& c, std::size_t k); // of images and vectors of features
void compile_layer_norm(compiler& c, std::size_t k); // of sequences
// pooling.cpp
void compile_global_average(compiler& c, std::size_t k);
void compile_max_pool(compiler& c, std::size_t k);
void compile_pooling(compiler& c, std::size_t k);

// Returns whether n is a batch norm, synchronised or not.
inline bool is_batch_norm(const node& n) {
  return n.op == "batch_norm" || n.op == "sync_batch_norm";
}

// Returns whether a max pooling can be a stage of compile_batch_norm(): a window of 2x2 with stride 2,
// without padding, over an image of even height and width.
bool fusible_pool(const compiler& c, const node& n);

// Returns the elementwise function that the op of that name computes; elementwise_function::none for other ops.
elementwise_function function_named(std::string_view op);

// The state of one compilation. Member functions that take a node throw RG_E_CONFIG, with its name, if it is
// inconsistent.
class compiler : public executors::graph_compiler {
public:
  // Reads the graph's nodes and tensors. `graph` and `p` must outlive this object; p.dev and p.batch must be set.
  compiler(const rg_graph& graph, program& p);
  // Compiles all nodes and moves the weights into the program. Throws as compile(); call it once.
  void run();

  const device& dev() const { return program_.dev; }
  std::size_t lanes() const { return dev().kernels->lanes; } // channels in a block

  // Returns weight i of n, which must have this shape and kind.
  weight* tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape,
                 std::uint32_t kind = RG_TENSOR_DENSE);
  // Returns weight i of n, which must be a dense tensor of two dimensions with this number of columns.
  weight* matrix(const node& n, std::size_t i, std::size_t columns);
  // Returns weight i of n, which must be a table for lookups: of two dimensions, sparse or dense.
  weight* table(const node& n, std::size_t i);

  // The output of node k, for reading and setting. Null until node k is compiled, if an op fused node k and does not
  // store its output, and for a sum of losses.
  value*& output(std::size_t k) { return values_[k]; }
  // Input i of n, in the type and layout in which it was computed. Fails with RG_E_CONFIG if it is not stored.
  value* stored(const node& n, std::size_t i);
  // Input i of n in fp32, in the layout that it has: row-major (value::plain) or blocked. Fails as stored() does. Emits
  // a conversion if needed.
  value* input(const node& n, std::size_t i);
  // Input i of n in fp32 and blocked. The input must be stored. Emits the change of layout once per value.
  value* blocked(const node& n, std::size_t i);
  // As blocked(), but in the type in which the value was computed, fp32 or bf16: for ops that accept both.
  value* either(const node& n, std::size_t i);
  // Returns v in bf16 (`half`) or in fp32: v itself if it has that type, else a copy, for which it emits one conversion
  // per value.
  value* as_type(value* v, bool half);
  // Input i of n, which must be a row-major sequence; converts it to bf16 (`half`) or to fp32, as as_type() does.
  value* sequence(const node& n, std::size_t i, bool half = false);
  // Input i of n, which must be an input of the network with `elements` numbers of type RG_I32 per sample.
  value* indices(const node& n, std::size_t i, std::size_t elements);
  // Creates a value with this shape of a sample; the program owns it. `plain`: row-major, else blocked.
  value* make_value(const std::string& name, const std::vector<std::size_t>& shape, bool plain = false);
  // Creates the output of node k, blocked, in bf16 (`half`) or in fp32, with the node's name and shape.
  value* make_output(std::size_t k, bool half) {
    values_[k] = make_value(nodes_[k].name, nodes_[k].shape);
    values_[k]->half = half;
    return values_[k];
  }
  // Rounds up to whole blocks of channels.
  std::size_t round_up(std::size_t channels) const { return (channels + lanes() - 1) / lanes() * lanes(); }

  // Constructs an op from the arguments, appends it to the program, which owns it, and marks the values and weights
  // that it uses. Returns the op. A loss is added to the program's losses, too.
  template <class Op, class... A> Op* emit(A&&... a) {
    auto o = std::make_unique<Op>(std::forward<A>(a)...);
    Op* raw = o.get();
    if constexpr (std::is_base_of_v<loss, Op>) program_.add(*raw);
    add(std::move(o));
    return raw;
  }

  // Returns the bias of node k, its weight 1 with `outputs` elements, or null if it has none. Also null if the node's
  // only consumer is a batch norm and no other node uses the bias: the batch norm takes it over, and folded() returns
  // it.
  weight* bias_of(std::size_t k, std::size_t outputs);
  // Returns the bias that batch norm k takes over from the layer before it, or null. Requires that bias_of() was called
  // for that layer.
  weight* folded(std::size_t k) const;

private:
  void compile_node(std::size_t k) override;
  // Returns weight i of n.
  weight* weight_of(const node& n, std::size_t i) const;
  // Makes the value of input k of the network.
  void add_input(std::size_t k);
  // Appends an op to the program, and sets what its values and weights record of it.
  void add(std::unique_ptr<op> o);

  program& program_;
  std::vector<value*> values_;            // by node
  std::map<value*, value*> blocked_;      // row-major values to their blocked copies
  std::map<value*, value*> converted_;    // values to their copies in the other type
  std::map<std::size_t, weight*> folded_; // by batch norm
  std::vector<std::unique_ptr<weight>> tensors_;
};

} // namespace onednn

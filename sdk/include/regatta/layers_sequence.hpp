// SPDX-License-Identifier: Apache-2.0
//
// Layers for sequences, of which transformers consist. Each function adds a node, and its weights, to the network of
// its inputs, and returns the node's output; it computes nothing. Shapes are those of one sample. Layers throw
// rg::error (RG_E_CONFIG), naming the layer, if a shape or an option does not fit. `name` must differ for layers with
// weights.
//
//   void build(rg::network& net, const parameters& p) const {
//     auto words = net.indices("words", {128}, 30000);                        // [128]
//     auto next = net.indices("next", {128}, 30000);
//     const auto table = rg::embedding_table(net, "words", 30000, 256);
//     auto x = rg::embedding(words, "embedding", table, {.sinusoids = true}); // [128, 256]
//     x = rg::layer_norm(rg::add(rg::attention(x, x, words, "self", {.heads = 4, .causal = true}), x), "norm");
//     rg::token_cross_entropy(rg::dense_shared(x, "out", table), next);
//   }
//
// A sequence is [T,D]: T positions with D features each. Index 0 is padding: attention ignores it, and losses do not
// count it. dense, relu, dropout and add accept sequences, too; dense works on the last dimension.
//
//   op                     inputs          weights, in order [shape]          attributes               output
//   ---------------------  --------------  ---------------------------------  -----------------------  ---------------
//   embedding              indices [T]     table [V,D]                        scale, sinusoids         [T,D]
//                                          positions [P,D], may be left out
//   layer_norm             x [T,D]         scale [D], bias [D]                epsilon                  as x
//   gelu, tanh             x [T,D]         -                                  -                        as x
//   attention              query [T,D],    -                                  heads, causal, p, layer  [T,D]
//                          key [S,D],
//                          value [S,D],
//                          indices [S]
//   select_positions       x [T,D],        -                                  -                        [M,D]
//                          indices [M]
//   first_position         x [T,D]         -                                  -                        [1,D]
//   token_cross_entropy    logits [T,V],   -                                  smoothing, accuracy      []
//                          labels [T]
//
//   embedding  scale * table[index], plus positions[t] at position t if that table is given (P >= T), plus, with
//              `sinusoids`, the position's encoding: sin(t / 10000^(2i / D)) at 2i and the cosine of the same at 2i + 1
//              (Vaswani et al., "Attention is all you need", 2017, section 3.5).
//   layer_norm scale * (x - mean) / sqrt(variance + epsilon) + bias, over the D features of each position, with biased
//              variance (Ba, Kiros and Hinton 2016).
//   gelu       x Phi(x) (Hendrycks and Gimpel 2016), not the approximation by tanh.
//   attention  softmax(q k^T / sqrt(D / heads)) v in each of `heads` equal parts of the features, concatenated
//              (Vaswani et al., section 3.2). A position attends to the keys whose index is not 0, and with `causal`
//              only to those up to its own number. A position without any key gets zeros. In training, each probability
//              is zeroed with probability p and else scaled by 1 / (1 - p). The random bits are those of the op dropout
//              (regatta/layers.hpp) with this `layer`, for element (head * T + t) * S + s of the sample.
//   select_positions x[indices[m]] for each m.
//   first_position x[0].
//   token_cross_entropy  -sum over v of q[v] log softmax(logits)[v], with q = smoothing / V for all v and 1 - smoothing
//              more for the label (Szegedy et al. 2016, section 7). Positions with label 0 are not counted. The loss is
//              a mean over the counted positions. The metric is "perplexity" (without the smoothing), or, if
//              `accuracy`, "masked_accuracy": the fraction of counted positions at which the label has the highest
//              logit.
#pragma once

#include <regatta/layers.hpp>

namespace rg {

// Adds the table NAME.table of `rows` vectors of `size` elements, and returns its number, by which several layers can
// share it. Its initial values are normal with standard deviation `deviation`; 0: 1 / sqrt(size).
inline std::uint32_t embedding_table(network& net, const std::string& name, std::int64_t rows, std::int64_t size,
                                     double deviation = 0) {
  const double b = deviation > 0 ? deviation : 1 / std::sqrt(static_cast<double>(size));
  return net.weight(name + ".table", {rows, size}, {.init = RG_INIT_NORMAL, .b = b});
}

struct embedding_options {
  double scale = 1;       // factor on the table's rows
  bool sinusoids = false; // adds the encoding of the position
  // Number of a table (from embedding_table) whose row t is added at position t. Negative: none.
  std::int64_t positions = -1;
};

// [T] -> [T,D]. `table`: a number from embedding_table.
inline value embedding(value indices, const std::string& name, std::uint32_t table, const embedding_options& o = {}) {
  detail::expect_rank(indices, 1, name);
  auto& net = indices.net();
  std::vector<std::uint32_t> weights = {table};
  if (o.positions >= 0) weights.push_back(static_cast<std::uint32_t>(o.positions));
  return net.node("embedding", name, {indices}, weights, {{"scale", o.scale}, {"sinusoids", o.sinusoids ? 1.0 : 0.0}},
                  {indices.dims()[0], net.weight_dims(table)[1]});
}

// A dense layer over the last dimension, with weight number `weight` [O,D], which other layers share, and if `bias` its
// own bias NAME.bias [O], which begins at 0, without weight decay. [D] -> [O], or [T,D] -> [T,O].
inline value dense_shared(value x, const std::string& name, std::uint32_t weight, bool bias = false) {
  auto& net = x.net();
  const shape w = net.weight_dims(weight);
  if (w.size() != 2 || x.dims().empty() || x.dims().back() != w[1])
    detail::bad_layer(name, "its weight has not the shape that its input needs");
  std::vector<std::uint32_t> weights = {weight};
  if (bias) weights.push_back(net.weight(name + ".bias", {w[0]}, detail::small_vector(0, false)));
  shape out = x.dims();
  out.back() = w[0];
  return net.node("dense", name, {x}, weights, {}, out);
}

struct layer_norm_options {
  double epsilon = 1e-5;
};

// x: [T,D]. Adds the weights NAME.scale [D], which begins at 1, and NAME.bias [D], which begins at 0, without weight
// decay.
inline value layer_norm(value x, const std::string& name, const layer_norm_options& o = {}) {
  detail::expect_rank(x, 2, name);
  auto& net = x.net();
  const shape features = {x.dims()[1]};
  const std::vector<std::uint32_t> weights = {net.weight(name + ".scale", features, detail::small_vector(1, false)),
                                              net.weight(name + ".bias", features, detail::small_vector(0, false))};
  return net.node("layer_norm", name, {x}, weights, {{"epsilon", o.epsilon}}, x.dims());
}

// x: [T,D].
inline value gelu(value x) {
  detail::expect_rank(x, 2, "gelu");
  return x.net().node("gelu", "", {x}, {}, {}, x.dims());
}
inline value tanh(value x) {
  detail::expect_rank(x, 2, "tanh");
  return x.net().node("tanh", "", {x}, {}, {}, x.dims());
}

struct attention_options {
  std::int64_t heads = 1;
  bool causal = false;
  double dropout = 0;   // probability that an attention probability is zeroed; at least 0 and less than 1
  double deviation = 0; // standard deviation of the projections' initial weights; 0: 1 / sqrt(features of its input)
  bool bias = true;     // the projections have biases, without weight decay; attend() ignores this and `deviation`
};

// Attention of queries [T,D] to keys and values [S,D], without projections. `indices` [S] are the tokens of the keys.
inline value attend(value query, value key, value values, value indices, const std::string& name,
                    const attention_options& o) {
  detail::expect_rank(query, 2, name);
  const shape &q = query.dims(), &k = key.dims();
  if (k.size() != 2 || k != values.dims() || q[1] != k[1] || indices.dims() != shape{k[0]})
    detail::bad_layer(name, "queries, keys, values and the keys' indices do not fit together");
  if (o.heads < 1 || q[1] % o.heads != 0)
    detail::bad_layer(name,
                      std::to_string(q[1]) + " features do not divide into " + std::to_string(o.heads) + " heads");
  if (!(o.dropout >= 0 && o.dropout < 1)) detail::bad_layer(name, "dropout must be at least 0 and less than 1");
  auto& net = query.net();
  return net.node("attention", name, {query, key, values, indices}, {},
                  {{"heads", static_cast<double>(o.heads)},
                   {"causal", o.causal ? 1.0 : 0.0},
                   {"p", o.dropout},
                   {"layer", o.dropout > 0 ? static_cast<double>(net.next_random_layer()) : 0.0}},
                  q);
}

// Multi-head attention of x [T,D] to `memory` [S,M] (x itself: self-attention), with the four projections NAME.query,
// NAME.key, NAME.value and NAME.output to D features. `indices` [S] are the tokens of `memory`.
inline value attention(value x, value memory, value indices, const std::string& name, const attention_options& o = {}) {
  detail::expect_rank(x, 2, name);
  const std::int64_t size = x.dims()[1];
  const dense_options projection = {.bias = o.bias, .gain = 1, .deviation = o.deviation, .bias_decays = false};
  const value query = dense(x, name + ".query", size, projection);
  const value key = dense(memory, name + ".key", size, projection);
  const value values = dense(memory, name + ".value", size, projection);
  return dense(attend(query, key, values, indices, name, o), name + ".output", size, projection);
}

// The positions of x that `indices` names: [T,D] -> [M,D].
inline value select_positions(value x, value indices) {
  detail::expect_rank(x, 2, "select_positions");
  detail::expect_rank(indices, 1, "select_positions");
  return x.net().node("select_positions", "", {x, indices}, {}, {}, {indices.dims()[0], x.dims()[1]});
}
// The first position of x: [T,D] -> [1,D].
inline value first_position(value x) {
  detail::expect_rank(x, 2, "first_position");
  return x.net().node("first_position", "", {x}, {}, {}, {1, x.dims()[1]});
}

struct token_cross_entropy_options {
  double smoothing = 0;  // label smoothing: at least 0 and less than 1
  bool accuracy = false; // the metric is the accuracy instead of the perplexity
};

// The loss of logits [T,V] and labels [T], of which 0 is padding. A loss must be the network's last node, except inside
// sum_of_losses().
inline value token_cross_entropy(value logits, value labels, const token_cross_entropy_options& o = {}) {
  detail::expect_rank(logits, 2, "loss");
  if (labels.dims() != shape{logits.dims()[0]}) detail::bad_layer("loss", "needs one label for each position");
  if (!(o.smoothing >= 0 && o.smoothing < 1)) detail::bad_layer("loss", "smoothing must be at least 0 and less than 1");
  return logits.net().node("token_cross_entropy", "", {logits, labels}, {},
                           {{"smoothing", o.smoothing}, {"accuracy", o.accuracy ? 1.0 : 0.0}}, {});
}

} // namespace rg

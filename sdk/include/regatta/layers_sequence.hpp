// SPDX-License-Identifier: Apache-2.0
//
// Layers for sequences: what transformers are made of. Included by layers.hpp, which has the conventions.
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
// A sequence is [T,D]: T places with D features each. Indices of 0 are padding: attention does not see them, losses do
// not count them. dense, relu, dropout and add take sequences, too; dense works on the last dimension.
//
//   op                     inputs          weights, in order [shape]          attributes               output
//   ---------------------  --------------  ---------------------------------  -----------------------  ---------------
//   embedding              indices [T]     table [V,D]                        scale, sinusoids         [T,D]
//                                          places [P,D], may be left out
//   layer_norm             x [T,D]         scale [D], bias [D]                epsilon                  as x
//   gelu, tanh             x [T,D]         -                                  -                        as x
//   attention              query [T,D],    -                                  heads, causal, p, layer  [T,D]
//                          key [S,D],
//                          value [S,D],
//                          indices [S]
//   take_places            x [T,D],        -                                  -                        [M,D]
//                          indices [M]
//   first_place            x [T,D]         -                                  -                        [1,D]
//   token_cross_entropy    logits [T,V],   -                                  smoothing, accuracy      []
//                          labels [T]
//
//   embedding  scale * table[index], plus places[t] where there is such a table (P >= T), plus, if `sinusoids`, the
//              position's code: sin(t / 10000^(2i / D)) at 2i and the cosine of the same at 2i + 1 (Vaswani et al.,
//              "Attention is all you need", 2017, section 3.5).
//   layer_norm over the D features of each place (Ba, Kiros and Hinton 2016), biased variance.
//   gelu       x Phi(x) (Hendrycks and Gimpel 2016), not its approximation by tanh.
//   attention  softmax(q k^T / sqrt(D / heads)) v in each of `heads` equal parts of the features, put side by side
//              (ibid., section 3.2). A place sees the keys whose index is not 0, and with `causal` only those up to its
//              own number. What sees nothing gets zeros. Dropout on the probabilities, as in the op dropout: their
//              element number is (head * T + t) * S + s.
//   take_places x[indices[m]] for each m.
//   token_cross_entropy  -sum over v of q[v] log softmax(logits)[v], with q = smoothing / V for all v and 1 - smoothing
//              more for the label (Szegedy et al. 2016, section 7). Labels of 0 do not count. The loss is a mean over
//              those that do. The metric is "perplexity" (without the smoothing), or, if `accuracy`, "masked_accuracy":
//              how often the label has the highest logit.
#pragma once

#include <regatta/layers.hpp>

namespace rg {

// A table of `rows` vectors of `size` elements that several layers may share, by its number. Normal numbers of deviation
// `deviation`; 0: 1 / sqrt(size).
inline std::uint32_t embedding_table(network& net, const std::string& name, std::int64_t rows, std::int64_t size,
                                     double deviation = 0) {
  const double b = deviation > 0 ? deviation : 1 / std::sqrt(static_cast<double>(size));
  return net.weight(name + ".table", {rows, size}, {.init = RG_INIT_NORMAL, .b = b});
}

struct embedding_options {
  double scale = 1;
  bool sinusoids = false;
  // Adds row t of this table (embedding_table) to place t. Negative: no such table.
  std::int64_t places = -1;
};

// table: what embedding_table returned.
inline value embedding(value indices, const std::string& name, std::uint32_t table, const embedding_options& o = {}) {
  detail::expect_rank(indices, 1, name);
  auto& net = indices.net();
  std::vector<std::uint32_t> weights = {table};
  if (o.places >= 0) weights.push_back(static_cast<std::uint32_t>(o.places));
  return net.node("embedding", name, {indices}, weights, {{"scale", o.scale}, {"sinusoids", o.sinusoids ? 1.0 : 0.0}},
                  {indices.dims()[0], net.weight_dims(table)[1]});
}

// dense over the last dimension with a weight [O,D] that other layers share, and a bias of its own if asked for.
inline value dense_shared(value x, const std::string& name, std::uint32_t weight, bool bias = false) {
  auto& net = x.net();
  const shape w = net.weight_dims(weight);
  if (w.size() != 2 || x.dims().empty() || x.dims().back() != w[1])
    detail::bad_layer(name, "its weight does not fit what it takes");
  std::vector<std::uint32_t> weights = {weight};
  if (bias) weights.push_back(net.weight(name + ".bias", {w[0]}, detail::small_vector(0, false)));
  shape out = x.dims();
  out.back() = w[0];
  return net.node("dense", name, {x}, weights, {}, out);
}

struct layer_norm_options {
  double epsilon = 1e-5;
};

inline value layer_norm(value x, const std::string& name, const layer_norm_options& o = {}) {
  detail::expect_rank(x, 2, name);
  auto& net = x.net();
  const shape features = {x.dims()[1]};
  const std::vector<std::uint32_t> weights = {net.weight(name + ".scale", features, detail::small_vector(1, false)),
                                              net.weight(name + ".bias", features, detail::small_vector(0, false))};
  return net.node("layer_norm", name, {x}, weights, {{"epsilon", o.epsilon}}, x.dims());
}

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
  double dropout = 0;
  double deviation = 0; // of the projections' initial weights; 0: 1 / sqrt(D)
  bool bias = true;     // in the projections; never decays
};

// The product of queries, keys and values alone, without projections. `indices` are those of the keys.
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

// Multi-head attention of x on `memory` (x itself: self-attention), with its four projections.
inline value attention(value x, value memory, value indices, const std::string& name, const attention_options& o = {}) {
  detail::expect_rank(x, 2, name);
  const std::int64_t size = x.dims()[1];
  const dense_options projection = {.bias = o.bias, .gain = 1, .deviation = o.deviation, .bias_decays = false};
  const value query = dense(x, name + ".query", size, projection);
  const value key = dense(memory, name + ".key", size, projection);
  const value values = dense(memory, name + ".value", size, projection);
  return dense(attend(query, key, values, indices, name, o), name + ".output", size, projection);
}

// The places of x that `indices` names.
inline value take_places(value x, value indices) {
  detail::expect_rank(x, 2, "take_places");
  detail::expect_rank(indices, 1, "take_places");
  return x.net().node("take_places", "", {x, indices}, {}, {}, {indices.dims()[0], x.dims()[1]});
}
inline value first_place(value x) {
  detail::expect_rank(x, 2, "first_place");
  return x.net().node("first_place", "", {x}, {}, {}, {1, x.dims()[1]});
}

struct token_cross_entropy_options {
  double smoothing = 0;
  bool accuracy = false; // as the metric, instead of the perplexity
};

inline value token_cross_entropy(value logits, value labels, const token_cross_entropy_options& o = {}) {
  detail::expect_rank(logits, 2, "loss");
  if (labels.dims() != shape{logits.dims()[0]}) detail::bad_layer("loss", "needs one label for each place");
  if (!(o.smoothing >= 0 && o.smoothing < 1)) detail::bad_layer("loss", "smoothing must be at least 0 and less than 1");
  return logits.net().node("token_cross_entropy", "", {logits, labels}, {},
                           {{"smoothing", o.smoothing}, {"accuracy", o.accuracy ? 1.0 : 0.0}}, {});
}

} // namespace rg

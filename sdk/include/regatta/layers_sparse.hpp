// SPDX-License-Identifier: Apache-2.0
//
// Layers for models that look up sparse features in large tables: click prediction, text matching. Each function adds a
// node, and its weights, to the network of its inputs, and returns the node's output; it computes nothing. Shapes are
// those of one sample. Layers throw rg::error (RG_E_CONFIG), naming the layer, if a shape or an option does not fit.
//
//   void build(rg::network& net, const parameters& p) const {
//     auto features = net.values("features", {13});
//     auto ids = net.indices("ids", {26}, 1000001);
//     auto label = net.index("label", 2);
//     const auto table = rg::sparse_table(net, "table", 1000001, 10);
//     auto x = rg::concat({rg::sparse_embedding(ids, "embedding", table), features}); // [26 * 10 + 13]
//     rg::softmax_cross_entropy_auc(rg::dense(x, "out", 2, {.gain = 1}), label);
//   }
//
//   op                         inputs          weights, in order   attributes   output
//   -------------------------  --------------  ------------------  -----------  ----------------------
//   sparse_embedding           ids [S]         table [R,D]         padding      [S * D]
//   embedding_bag              ids [L]         table [R,D]         padding      [D]
//   concat                     vectors         -                   -            [sum of their lengths]
//   softsign                   x               -                   -            as x
//   cosine                     a [K], b [K]    -                   -            [1]
//   softmax_cross_entropy_auc  logits [2],     -                   buckets      []
//                              label index
//   pairwise_hinge             positive [1],   -                   margin       []
//                              negative [1]
//
//   sparse_embedding  the rows of the table that the ids name, concatenated.
//   embedding_bag     the sum of these rows.
//   padding           the id that is padding: it yields zeros and has no gradient; -1: no id is.
//   table             RG_TENSOR_ROWS, or RG_TENSOR_DENSE for small tables. A row's gradient is summed over the batch in
//                     the order of the samples, and within a sample in the order of the ids.
//   softsign          x / (1 + |x|).
//   cosine            a . b / (|a| |b|); 0, without gradients, if |a| |b| is under 1e-12.
//   softmax_cross_entropy_auc  the loss of softmax_cross_entropy. The metric is "auc", the area under the curve of true
//                     over false positives, from histograms of the probability of class 1: `buckets` of equal width,
//                     2 to 1000000; samples within one count as ties. NaN if the data has one class only. Evaluation
//                     sums: negatives by bucket, positives by bucket, samples, loss.
//   pairwise_hinge    the loss max(0, margin - positive + negative). The metric is "pos_neg_ratio": pairs in the right
//                     order (positive > negative) over all other pairs, or over 1 if there are none.
//                     Evaluation sums: pairs in the right order, samples, loss.
#pragma once

#include <regatta/layers.hpp>

namespace rg {

struct table_options {
  bool sparse = true; // a sparse table; false: a dense weight, all rows of which are updated in each step
  double range = 0;   // initial values are uniform from -range to range; 0: 1 / sqrt(dim)
  float lr_scale = 1; // factor on the learning rate
  float decay = 0;    // factor on weight decay
};

// Adds a table [rows, dim] and returns its number, by which several layers can share it.
inline std::uint32_t sparse_table(network& net, const std::string& name, std::int64_t rows, std::int64_t dim,
                                  const table_options& o = {}) {
  if (rows < 1 || dim < 1) detail::bad_layer(name, "a table needs rows of at least one element");
  const double range = o.range > 0 ? o.range : 1 / std::sqrt(static_cast<double>(dim));
  return net.weight(name, {rows, dim},
                    {.kind = o.sparse ? RG_TENSOR_ROWS : RG_TENSOR_DENSE,
                     .init = RG_INIT_UNIFORM,
                     .a = -range,
                     .b = range,
                     .decay = o.decay,
                     .lr_scale = o.lr_scale});
}

inline constexpr std::int64_t no_padding = -1;

namespace detail {
inline value look_up(const char* op, value ids, const std::string& name, std::uint32_t table, std::int64_t padding,
                     bool sum) {
  expect_rank(ids, 1, name);
  auto& net = ids.net();
  const std::int64_t dim = net.weight_dims(table).at(1);
  return net.node(op, name, {ids}, {table}, {{"padding", static_cast<double>(padding)}},
                  {sum ? dim : ids.dims()[0] * dim});
}
} // namespace detail

// The rows of the table for all ids, concatenated: ids [S] -> [S * dim]. `padding`: the id that yields zeros; none by
// default.
inline value sparse_embedding(value ids, const std::string& name, std::uint32_t table,
                              std::int64_t padding = no_padding) {
  return detail::look_up("sparse_embedding", ids, name, table, padding, false);
}
// The sum of the rows of the table for all ids: ids [L] -> [dim]. `padding` as in sparse_embedding().
inline value embedding_bag(value ids, const std::string& name, std::uint32_t table, std::int64_t padding = no_padding) {
  return detail::look_up("embedding_bag", ids, name, table, padding, true);
}

// Concatenates vectors, one or more.
inline value concat(const std::vector<value>& parts) {
  if (parts.empty()) throw error(RG_E_CONFIG, "concat: there is nothing to join");
  std::int64_t length = 0;
  for (const value& v : parts) {
    detail::expect_rank(v, 1, "concat");
    length += v.dims()[0];
  }
  return parts[0].net().node("concat", "", parts, {}, {}, {length});
}

inline value softsign(value x) {
  return x.net().node("softsign", "", {x}, {}, {}, x.dims());
}

// The cosine of the angle between two vectors.
inline value cosine(value a, value b, const std::string& name = "") {
  detail::expect_rank(a, 1, "cosine");
  if (a.dims() != b.dims()) detail::bad_layer("cosine", "its inputs must have the same shape");
  return a.net().node("cosine", name, {a, b}, {}, {}, {1});
}

// Losses; each must be the network's last node, except inside sum_of_losses(). softmax_cross_entropy_auc() takes
// logits [2] and a label from index(name, 2); pairwise_hinge() takes two scores, each [1].
inline value softmax_cross_entropy_auc(value logits, value label, std::int64_t buckets = 4096) {
  if (logits.dims() != shape{2}) detail::bad_layer("loss", "the area under the curve needs two logits");
  detail::expect_rank(label, 0, "loss");
  return logits.net().node("softmax_cross_entropy_auc", "loss", {logits, label}, {},
                           {{"buckets", static_cast<double>(buckets)}}, {});
}
inline value pairwise_hinge(value positive, value negative, double margin) {
  if (positive.dims() != shape{1} || negative.dims() != shape{1})
    detail::bad_layer("loss", "compares two numbers a sample");
  return positive.net().node("pairwise_hinge", "loss", {positive, negative}, {}, {{"margin", margin}}, {});
}

} // namespace rg

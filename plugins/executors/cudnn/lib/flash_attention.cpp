// SPDX-License-Identifier: Apache-2.0
#include "lib/flash_attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

namespace cudnn {
namespace {

using tensor = graph::tensor;

// Numbers of the tensors in memory, in the order in which both graphs add them. The forward graph has those before
// `out_gradient`, the backward graph all of them. With dropout, `kept` is the last tensor of either.
enum : tensor {
  query = 1,
  key,
  value,
  mask,
  out,
  statistics,
  out_gradient,
  query_gradient,
  key_gradient,
  value_gradient,
  sums
};
constexpr tensor kept_of(bool back) {
  return back ? sums + 1 : statistics + 1;
}

// The common part of both graphs. Dimensions are [sample, head, row, column]. cuDNN's engines recognise a graph by its
// operations and by the relative sizes of its tensors, so these must stay as in NVIDIA's cudnn-frontend
// (scaled_dot_product_*).
class builder {
public:
  builder(const flash_shape& s, bool back) : s_(s) {
    const cudnnDataType_t type = dnn_type(s.type);
    const graph::sizes rows = {s.samples, s.heads, s.queries, s.size}, columns = {s.samples, s.heads, s.keys, s.size};
    const std::int64_t width = s.heads * s.size;
    const auto places = [&](std::int64_t n) { return graph::sizes{n * width, s.size, width, 1}; };
    const auto across = [](graph::sizes v) { // the layout of the second operand of a GEMM if it is transposed
      std::swap(v[2], v[3]);
      return v;
    };
    g.memory(type, rows, places(s.queries));
    g.memory(type, across(columns), across(places(s.keys)));
    back ? g.memory(type, across(columns), across(places(s.keys))) : g.memory(type, columns, places(s.keys));
    g.memory(type, {s.samples, 1, 1, s.keys}, {s.keys, s.keys, s.keys, 1});
    g.memory(type, rows, places(s.queries));
    g.memory(CUDNN_DATA_FLOAT, row_, row_strides());
    if (back) {
      g.memory(type, rows, places(s.queries));
      g.memory(type, rows, places(s.queries));
      g.memory(type, columns, places(s.keys));
      g.memory(type, columns, places(s.keys));
      g.memory(CUDNN_DATA_FLOAT, row_, row_strides());
    }
    if (s.dropout > 0) {
      kept_ = g.memory(type, square_, {s.heads * s.queries * s.keys, s.queries * s.keys, s.keys, 1});
      scale_ = g.constant(static_cast<float>(1 / (1 - s.dropout)));
    }
  }

  tensor scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) { return g.between(type, square_); }
  tensor rows() { return g.between(CUDNN_DATA_FLOAT, row_); }
  tensor map(cudnnPointwiseMode_t mode, graph::operands in, tensor y) {
    g.map(mode, in, y);
    return y;
  }
  tensor gemm(tensor a, tensor b, tensor c) {
    g.multiply(a, b, c);
    return c;
  }
  tensor factor() {
    if (!factor_) factor_ = g.constant(static_cast<float>(1 / std::sqrt(static_cast<double>(s_.size))));
    return factor_;
  }
  // kept(): x with dropped elements set to zero. scaled(): x times 1 / (1 - p). Both return x if there is no dropout.
  tensor kept(tensor x, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return kept_ ? map(CUDNN_POINTWISE_MUL, {x, kept_}, scores(type)) : x;
  }
  tensor scaled(tensor x) { return kept_ ? map(CUDNN_POINTWISE_MUL, {x, scale_}, scores()) : x; }
  // factor q k^T + mask
  tensor masked_scores() {
    const tensor made = gemm(query, key, scores());
    const tensor scaled = map(CUDNN_POINTWISE_MUL, {made, factor()}, scores());
    return map(CUDNN_POINTWISE_ADD, {scaled, mask}, scores());
  }
  // Sets the columns behind the row's dtype to minus infinity.
  tensor causal(tensor x) {
    if (!s_.causal) return x;
    const tensor row = scores(CUDNN_DATA_INT32), column = scores(CUDNN_DATA_INT32), seen = scores(CUDNN_DATA_BOOLEAN);
    g.map(CUDNN_POINTWISE_GEN_INDEX, {x}, row, CUDNN_DATA_FLOAT, 2);
    g.map(CUDNN_POINTWISE_GEN_INDEX, {x}, column, CUDNN_DATA_FLOAT, 3);
    g.map(CUDNN_POINTWISE_CMP_GE, {row, column}, seen, CUDNN_DATA_BOOLEAN);
    // Engines require infinity from cuDNN 9.10 on, and the lowest float before.
    const float least =
        cudnnGetVersion() < 91000 ? std::numeric_limits<float>::lowest() : -std::numeric_limits<float>::infinity();
    return map(CUDNN_POINTWISE_BINARY_SELECT, {x, g.constant(least), seen}, scores());
  }

  graph g;

private:
  graph::sizes row_strides() const { return {s_.heads * s_.queries, s_.queries, 1, 1}; }
  const flash_shape& s_;
  graph::sizes square_ = {s_.samples, s_.heads, s_.queries, s_.keys}, row_ = {s_.samples, s_.heads, s_.queries, 1};
  tensor factor_ = graph::none, kept_ = graph::none, scale_ = graph::none;
};

graph forward_of(const flash_shape& s) {
  builder b(s, false);
  const tensor x = b.causal(b.masked_scores());
  const tensor most = b.rows(), sum = b.rows();
  b.g.reduce(CUDNN_REDUCE_TENSOR_MAX, x, most);
  const tensor below = b.map(CUDNN_POINTWISE_SUB, {x, most}, b.scores());
  const tensor power = b.map(CUDNN_POINTWISE_EXP, {below}, b.scores());
  b.g.reduce(CUDNN_REDUCE_TENSOR_ADD, power, sum);
  const tensor log = b.map(CUDNN_POINTWISE_LOG, {sum}, b.rows());
  b.map(CUDNN_POINTWISE_ADD, {most, log}, statistics);
  const cudnnDataType_t type = dnn_type(s.type);
  tensor probability = b.map(CUDNN_POINTWISE_DIV, {power, sum}, b.scores(s.dropout > 0 ? CUDNN_DATA_FLOAT : type));
  if (s.dropout > 0) probability = b.kept(b.scaled(probability), type);
  b.gemm(probability, value, out);
  return std::move(b.g);
}

// With p the probabilities: dv = p^T dy; ds = p (dy v^T - rowsum(dy y)) factor; dq = ds k; dk = ds^T q. With dropout,
// whose factors d are 0 or D = 1 / (1 - probability): dv = (p d)^T dy; ds = p (dy v^T d - rowsum(dy y)) factor,
// computed with D factored out of the parentheses. dq is a GEMM of its own instead of a sum by atomic additions, so it
// is deterministic.
graph backward_of(const flash_shape& s) {
  builder b(s, true);
  const cudnnDataType_t type = dnn_type(s.type);
  const graph::sizes across = {s.samples, s.heads, s.keys, s.queries};
  const auto turned = [&](tensor x) {
    const tensor y = b.g.between(type, across, {s.heads * s.queries * s.keys, s.queries * s.keys, 1, s.keys});
    b.g.reshape(x, y);
    return y;
  };
  const tensor both = b.map(CUDNN_POINTWISE_MUL, {out_gradient, out},
                            b.g.between(CUDNN_DATA_FLOAT, {s.samples, s.heads, s.queries, s.size}));
  const tensor sum = b.rows();
  b.g.reduce(CUDNN_REDUCE_TENSOR_ADD, both, sum);
  b.map(CUDNN_POINTWISE_MUL, {sum, b.g.constant(static_cast<float>(1 - s.dropout))}, sums);

  const tensor below = b.map(CUDNN_POINTWISE_SUB, {b.masked_scores(), statistics}, b.scores());
  const tensor probability = b.map(CUDNN_POINTWISE_EXP, {b.causal(below)}, b.scores());
  b.gemm(turned(b.scaled(b.kept(probability))), out_gradient, value_gradient);

  const tensor gradient = b.kept(b.gemm(out_gradient, value, b.scores()));
  const tensor centred = b.map(CUDNN_POINTWISE_SUB, {gradient, sums}, b.scores());
  const tensor by_probability = b.scaled(b.map(CUDNN_POINTWISE_MUL, {centred, probability}, b.scores()));
  const tensor score_gradient = b.map(CUDNN_POINTWISE_MUL, {by_probability, b.factor()}, b.scores());
  b.gemm(turned(score_gradient), query, key_gradient);

  const std::int64_t width = s.heads * s.size;
  const tensor keys = b.g.between(type, {s.samples, s.heads, s.keys, s.size}, {s.keys * width, s.size, width, 1});
  b.g.reshape(key, keys);
  b.gemm(score_gradient, keys, query_gradient);
  return std::move(b.g);
}

std::string text_of(const flash_shape& s) {
  std::string all = s.causal ? " causal" : "";
  if (s.dropout > 0) all += " drops " + std::to_string(s.dropout);
  for (const std::int64_t n : {static_cast<std::int64_t>(s.type), s.samples, s.heads, s.queries, s.keys, s.size})
    all += ' ' + std::to_string(n);
  return all;
}

void* writable(const void* p) {
  return const_cast<void*>(p); // cuDNN takes addresses of read-only tensors without const, too
}

} // namespace

std::unique_ptr<flash_attention> flash_attention::of(planner& p, const flash_shape& s) {
  auto made = std::unique_ptr<flash_attention>(new flash_attention(s));
  const auto plan = [&p](const char* which, const flash_shape& of, graph g) {
    return execution(first_plan(p, which + text_of(of), g));
  };
  made->forward_ = plan("flash forward", s, forward_of(s));
  if (!made->forward_) return nullptr;
  made->backward_ = plan("flash backward", s, backward_of(s));
  if (!made->backward_) return nullptr;
  if (s.dropout == 0) return made;
  flash_shape whole = s;
  whole.dropout = 0;
  made->evaluation_ = plan("flash forward", whole, forward_of(whole));
  return made->evaluation_ ? std::move(made) : nullptr;
}

std::size_t flash_attention::statistics() const {
  return static_cast<std::size_t>(shape_.samples * shape_.heads * shape_.queries);
}

std::size_t flash_attention::workspace() const {
  return std::max({forward_.workspace(), backward_.workspace(), evaluation_ ? evaluation_.workspace() : 0});
}

// `kept` is the last address, and is left out without dropout.
void flash_attention::forward(cudnnHandle_t h, const values& v, void* workspace, const char* name) {
  const std::array<std::pair<tensor, void*>, 7> at = {{{query, writable(v.query)},
                                                       {key, writable(v.key)},
                                                       {value, writable(v.value)},
                                                       {mask, writable(v.mask)},
                                                       {out, v.out},
                                                       {cudnn::statistics, v.statistics},
                                                       {kept_of(false), writable(v.kept)}}};
  execution& e = evaluation_ && !v.kept ? evaluation_ : forward_;
  e.run(h, execution::addresses(at).first(v.kept ? 7 : 6), workspace, name);
}

void flash_attention::backward(cudnnHandle_t h, const values& v, const gradients& g, void* workspace,
                               const char* name) {
  const std::array<std::pair<tensor, void*>, 12> at = {{{query, writable(v.query)},
                                                        {key, writable(v.key)},
                                                        {value, writable(v.value)},
                                                        {mask, writable(v.mask)},
                                                        {out, v.out},
                                                        {cudnn::statistics, v.statistics},
                                                        {out_gradient, writable(g.out)},
                                                        {query_gradient, g.query},
                                                        {key_gradient, g.key},
                                                        {value_gradient, g.value},
                                                        {sums, g.sums},
                                                        {kept_of(true), writable(v.kept)}}};
  backward_.run(h, execution::addresses(at).first(v.kept ? 12 : 11), workspace, name);
}

} // namespace cudnn

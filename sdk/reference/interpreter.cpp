// SPDX-License-Identifier: Apache-2.0
#include "interpreter.hpp"
#include "attributes.hpp"

#include <regatta/ext/graph.h>
#include <regatta/random.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace reference {

namespace {

std::size_t size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

using image_shape = std::vector<std::int64_t>; // channels, height, width

// Calls f(input element, output element, element of the window) for each output and each element of its window that is
// not padding; elements are numbered within one channel of one sample.
template <class F>
void windows(const image_shape& in, const image_shape& out, std::int64_t kernel, std::int64_t stride,
             std::int64_t padding, const F& f) {
  for (std::int64_t oh = 0; oh < out[1]; ++oh)
    for (std::int64_t ow = 0; ow < out[2]; ++ow)
      for (std::int64_t kh = 0; kh < kernel; ++kh)
        for (std::int64_t kw = 0; kw < kernel; ++kw) {
          const std::int64_t h = oh * stride + kh - padding, w = ow * stride + kw - padding;
          if (h < 0 || w < 0 || h >= in[1] || w >= in[2]) continue;
          f(size(h * in[2] + w), size(oh * out[2] + ow), size(kh * kernel + kw));
        }
}

} // namespace

bool keeps(const batch& b, std::size_t sample, std::size_t element, double p, std::uint32_t layer) {
  const auto seed = rg::derive_seed(b.seed, b.step, layer, rg::stream_dropout);
  const auto bits = rg::random_bits(seed, b.first_sample + sample, static_cast<std::uint32_t>(element / 8));
  const std::uint32_t half = bits[element % 8 / 2] >> (element % 2 * 16) & 0xFFFF;
  return half >= static_cast<std::uint32_t>(std::lround(p * 65536));
}

double interpreter::node::attr(const char* key) const {
  for (const auto& [name_of_attr, number] : attrs)
    if (name_of_attr == key) return number;
  throw rg::error(RG_E_CONFIG, name + " has no " + key);
}

// Rows of the weight are the outputs, columns the inputs.
std::pair<std::size_t, std::size_t> interpreter::sizes(const node& dense) const {
  const rg_tensor& w = info_[dense.weights[0]];
  return {size(w.shape[1]), size(w.shape[0])};
}

interpreter::interpreter(const rg_graph& graph, tables t) {
  rg::refuse_unknown_attributes(graph, known_attributes);
  for (std::uint32_t k = 0; k < graph.node_count; ++k) {
    const rg_node raw = rg::copy_versioned(rg::at_stride(graph.nodes, k));
    node n{.op = raw.op,
           .name = raw.name ? raw.name : "",
           .inputs = {raw.inputs, raw.inputs + raw.input_count},
           .weights = {raw.weights, raw.weights + raw.weight_count},
           .shape = {raw.shape, raw.shape + raw.ndim}};
    for (std::uint32_t i = 0; i < raw.attr_count; ++i) {
      const auto a = rg::copy_versioned(rg::at_stride(raw.attrs, i));
      n.attrs.emplace_back(a.name, a.number);
    }
    for (std::int64_t d : n.shape) n.elements *= size(d);
    nodes_.push_back(std::move(n));
  }
  for (std::uint32_t i = 0; i < graph.tensor_count; ++i) {
    info_.push_back(rg::copy_versioned(rg::at_stride(graph.tensors, i)));
    const rg_tensor& info = info_.back();
    names_.emplace_back(info.name);
    const bool empty = info.kind == RG_TENSOR_ROWS && t == tables::rows_of_a_step;
    tensors.emplace_back(empty ? 0 : rg::storage_of(info), info.init == RG_INIT_CONSTANT ? info.init_a : 0);
  }
  rows.resize(tensors.size());
  values.resize(nodes_.size());
  value_gradients.resize(nodes_.size());
  saved_.resize(nodes_.size());
}

double interpreter::forward(const batch& b, bool training) {
  for (std::size_t k = 0; k < nodes_.size(); ++k) forward_node(k, b, training);
  double sum = 0;
  for (double loss : values.back()) sum += loss;
  return sum;
}

void interpreter::clear_gradients() {
  gradients.resize(tensors.size());
  for (std::size_t t = 0; t < tensors.size(); ++t) gradients[t].assign(tensors[t].size(), 0);
  for (std::size_t k = 0; k < nodes_.size(); ++k) value_gradients[k].assign(values[k].size(), 0);
}

void interpreter::backward(const batch& b) {
  clear_gradients();
  for (double& g : value_gradients.back()) g = 1.0 / static_cast<double>(b.global_samples);
  for (std::size_t k = nodes_.size(); k-- > 0;) backward_node(k, b);
}

void interpreter::forward_node(std::size_t k, const batch& b, bool training) {
  const node& n = nodes_[k];
  const std::string_view op = n.op;
  std::vector<double>&y = values[k], &saved = saved_[k];
  y.assign(b.samples * n.elements, 0);
  if (op == "input") {
    y = b.inputs[k];
    return;
  }
  const node& in = nodes_[n.inputs[0]];
  const std::vector<double>& x = values[n.inputs[0]];
  auto weight = [&](std::size_t i) -> std::vector<double>& { return tensors[n.weights[i]]; };

  if (op == "flatten") {
    y = x;
  } else if (op == "relu") {
    std::transform(x.begin(), x.end(), y.begin(), [](double v) { return std::max(v, 0.0); });
  } else if (op == "add") {
    const auto& other = values[n.inputs[1]];
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] + other[i];
  } else if (op == "sigmoid") {
    std::transform(x.begin(), x.end(), y.begin(), [](double v) { return 1 / (1 + std::exp(-v)); });
  } else if (op == "global_avg_pool") {
    const std::size_t spatial = in.elements / n.elements;
    for (std::size_t i = 0; i < x.size(); ++i) y[i / spatial] += x[i] / static_cast<double>(spatial);
  } else if (op == "scale_channels") {
    const auto& factors = values[n.inputs[1]];
    const std::size_t spatial = x.size() / factors.size();
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * factors[i / spatial];
  } else if (op == "dropout") {
    const double p = n.attr("p");
    saved.assign(x.size(), 1);
    for (std::size_t i = 0; training && i < x.size(); ++i)
      saved[i] =
          keeps(b, i / n.elements, i % n.elements, p, static_cast<std::uint32_t>(n.attr("layer"))) ? 1 / (1 - p) : 0;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * saved[i];
  } else if (op == "dense") {
    const auto [inputs, outputs] = sizes(n);
    for (std::size_t r = 0; r < y.size() / outputs; ++r)
      for (std::size_t o = 0; o < outputs; ++o) {
        double sum = n.weights.size() > 1 ? weight(1)[o] : 0;
        for (std::size_t i = 0; i < inputs; ++i) sum += x[r * inputs + i] * weight(0)[o * inputs + i];
        y[r * outputs + o] = sum;
      }
  } else if (op == "conv2d") {
    const auto kernel = static_cast<std::int64_t>(n.attr("kernel"));
    const std::size_t channels = size(in.shape[0]), outputs = size(n.shape[0]);
    const std::size_t xs = in.elements / channels, ys = n.elements / outputs, taps = size(kernel * kernel);
    for (std::size_t s = 0; s < b.samples; ++s)
      for (std::size_t o = 0; o < outputs; ++o) {
        double* out = y.data() + s * n.elements + o * ys;
        if (n.weights.size() > 1) std::fill_n(out, ys, weight(1)[o]);
        for (std::size_t c = 0; c < channels; ++c)
          windows(in.shape, n.shape, kernel, static_cast<std::int64_t>(n.attr("stride")),
                  static_cast<std::int64_t>(n.attr("padding")), [&](std::size_t xi, std::size_t yi, std::size_t tap) {
                    out[yi] += x[s * in.elements + c * xs + xi] * weight(0)[(o * channels + c) * taps + tap];
                  });
      }
  } else if (op == "max_pool" || op == "avg_pool") {
    const bool average = op == "avg_pool";
    const std::size_t channels = size(in.shape[0]), xs = in.elements / channels, ys = n.elements / channels;
    saved.assign(y.size(), 0); // average: elements of the window; maximum: index of the winner
    if (!average) std::fill(y.begin(), y.end(), -std::numeric_limits<double>::infinity());
    for (std::size_t c = 0; c < b.samples * channels; ++c)
      windows(in.shape, n.shape, static_cast<std::int64_t>(n.attr("kernel")),
              static_cast<std::int64_t>(n.attr("stride")), static_cast<std::int64_t>(n.attr("padding")),
              [&](std::size_t xi, std::size_t yi, std::size_t) {
                const double v = x[c * xs + xi];
                if (average) {
                  y[c * ys + yi] += v;
                  ++saved[c * ys + yi];
                } else if (v > y[c * ys + yi]) {
                  y[c * ys + yi] = v;
                  saved[c * ys + yi] = static_cast<double>(xi);
                }
              });
    for (std::size_t i = 0; average && i < y.size(); ++i) y[i] /= saved[i];
  } else if (op == "batch_norm" || op == "sync_batch_norm") { // one worker: the same
    const std::size_t channels = size(n.shape[0]), spatial = n.elements / channels;
    const double count = static_cast<double>(b.samples * spatial), momentum = n.attr("momentum");
    saved.assign(2 * channels, 0); // mean and 1 / deviation
    for (std::size_t c = 0; c < channels; ++c) {
      auto each = [&](auto f) {
        for (std::size_t s = 0; s < b.samples; ++s)
          for (std::size_t i = 0; i < spatial; ++i) f((s * channels + c) * spatial + i);
      };
      double mean = 0, variance = 0;
      each([&](std::size_t i) { mean += x[i] / count; });
      each([&](std::size_t i) { variance += (x[i] - mean) * (x[i] - mean) / count; });
      double &state_mean = weight(2)[c], &state_variance = weight(3)[c];
      if (training) {
        state_mean = momentum * state_mean + (1 - momentum) * mean;
        state_variance = momentum * state_variance + (1 - momentum) * variance;
      } else {
        mean = state_mean;
        variance = state_variance;
      }
      const double inverse = 1 / std::sqrt(variance + n.attr("epsilon"));
      saved[c] = mean;
      saved[channels + c] = inverse;
      each([&](std::size_t i) { y[i] = (x[i] - mean) * inverse * weight(0)[c] + weight(1)[c]; });
    }
  } else if (op == "sum_of_losses") {
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      for (std::size_t s = 0; s < b.samples; ++s) y[s] += values[n.inputs[i]][s];
  } else if (op == "softmax_cross_entropy") {
    const auto& labels = values[n.inputs[1]];
    saved.assign(x.size(), 0); // probabilities
    for (std::size_t s = 0; s < b.samples; ++s) {
      const double* logits = x.data() + s * in.elements;
      const double most = *std::max_element(logits, logits + in.elements);
      double sum = 0;
      for (std::size_t c = 0; c < in.elements; ++c) sum += saved[s * in.elements + c] = std::exp(logits[c] - most);
      for (std::size_t c = 0; c < in.elements; ++c) saved[s * in.elements + c] /= sum;
      y[s] = std::log(sum) - (logits[static_cast<std::size_t>(labels[s])] - most);
    }
  } else if (!forward_sequence(k, b, training) && !forward_sparse(k, b)) {
    throw rg::error(RG_E_UNSUPPORTED, "the reference has no op " + std::string(op));
  }
}

void interpreter::backward_node(std::size_t k, const batch& b) {
  const node& n = nodes_[k];
  const std::string_view op = n.op;
  if (op == "input") return;
  const std::vector<double>&dy = value_gradients[k], &saved = saved_[k];
  const node& in = nodes_[n.inputs[0]];
  const std::vector<double>& x = values[n.inputs[0]];
  std::vector<double>& dx = value_gradients[n.inputs[0]]; // several consumers add up
  auto weight = [&](std::size_t i) -> const std::vector<double>& { return tensors[n.weights[i]]; };
  auto gradient = [&](std::size_t i) -> std::vector<double>& { return gradients[n.weights[i]]; };

  if (op == "flatten") {
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += dy[i];
  } else if (op == "relu") {
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += values[k][i] > 0 ? dy[i] : 0;
  } else if (op == "add") {
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dx[i] += dy[i];
      value_gradients[n.inputs[1]][i] += dy[i];
    }
  } else if (op == "sigmoid") {
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += dy[i] * values[k][i] * (1 - values[k][i]);
  } else if (op == "global_avg_pool") {
    const std::size_t spatial = in.elements / n.elements;
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += dy[i / spatial] / static_cast<double>(spatial);
  } else if (op == "scale_channels") {
    const auto& factors = values[n.inputs[1]];
    const std::size_t spatial = x.size() / factors.size();
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dx[i] += dy[i] * factors[i / spatial];
      value_gradients[n.inputs[1]][i / spatial] += dy[i] * x[i];
    }
  } else if (op == "dropout") {
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] += dy[i] * saved[i];
  } else if (op == "dense") {
    const auto [inputs, outputs] = sizes(n);
    for (std::size_t r = 0; r < dy.size() / outputs; ++r)
      for (std::size_t o = 0; o < outputs; ++o) {
        const double g = dy[r * outputs + o];
        if (n.weights.size() > 1) gradient(1)[o] += g;
        for (std::size_t i = 0; i < inputs; ++i) {
          gradient(0)[o * inputs + i] += g * x[r * inputs + i];
          dx[r * inputs + i] += g * weight(0)[o * inputs + i];
        }
      }
  } else if (op == "conv2d") {
    const auto kernel = static_cast<std::int64_t>(n.attr("kernel"));
    const std::size_t channels = size(in.shape[0]), outputs = size(n.shape[0]);
    const std::size_t xs = in.elements / channels, ys = n.elements / outputs, taps = size(kernel * kernel);
    for (std::size_t s = 0; s < b.samples; ++s)
      for (std::size_t o = 0; o < outputs; ++o) {
        const double* g = dy.data() + s * n.elements + o * ys;
        for (std::size_t i = 0; n.weights.size() > 1 && i < ys; ++i) gradient(1)[o] += g[i];
        for (std::size_t c = 0; c < channels; ++c)
          windows(in.shape, n.shape, kernel, static_cast<std::int64_t>(n.attr("stride")),
                  static_cast<std::int64_t>(n.attr("padding")), [&](std::size_t xi, std::size_t yi, std::size_t tap) {
                    const std::size_t at = s * in.elements + c * xs + xi, w = (o * channels + c) * taps + tap;
                    gradient(0)[w] += g[yi] * x[at];
                    dx[at] += g[yi] * weight(0)[w];
                  });
      }
  } else if (op == "max_pool") {
    const std::size_t channels = size(in.shape[0]), xs = in.elements / channels, ys = n.elements / channels;
    for (std::size_t i = 0; i < dy.size(); ++i) dx[i / ys * xs + static_cast<std::size_t>(saved[i])] += dy[i];
  } else if (op == "avg_pool") {
    const std::size_t channels = size(in.shape[0]), xs = in.elements / channels, ys = n.elements / channels;
    for (std::size_t c = 0; c < b.samples * channels; ++c)
      windows(in.shape, n.shape, static_cast<std::int64_t>(n.attr("kernel")),
              static_cast<std::int64_t>(n.attr("stride")), static_cast<std::int64_t>(n.attr("padding")),
              [&](std::size_t xi, std::size_t yi, std::size_t) {
                dx[c * xs + xi] += dy[c * ys + yi] / saved[c * ys + yi];
              });
  } else if (op == "batch_norm" || op == "sync_batch_norm") {
    const std::size_t channels = size(n.shape[0]), spatial = n.elements / channels;
    const double count = static_cast<double>(b.samples * spatial);
    for (std::size_t c = 0; c < channels; ++c) {
      auto each = [&](auto f) {
        for (std::size_t s = 0; s < b.samples; ++s)
          for (std::size_t i = 0; i < spatial; ++i) f((s * channels + c) * spatial + i);
      };
      const double mean = saved[c], inverse = saved[channels + c];
      double sum = 0, product = 0;
      each([&](std::size_t i) {
        sum += dy[i];
        product += dy[i] * (x[i] - mean) * inverse;
      });
      gradient(0)[c] += product;
      gradient(1)[c] += sum;
      each([&](std::size_t i) {
        dx[i] += weight(0)[c] * inverse * (dy[i] - sum / count - (x[i] - mean) * inverse * product / count);
      });
    }
  } else if (op == "sum_of_losses") {
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      for (std::size_t s = 0; s < b.samples; ++s) value_gradients[n.inputs[i]][s] += dy[s];
  } else if (op == "softmax_cross_entropy") {
    const auto& labels = values[n.inputs[1]];
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const bool hit = static_cast<std::size_t>(labels[i / in.elements]) == i % in.elements;
      dx[i] += dy[i / in.elements] * (saved[i] - (hit ? 1 : 0));
    }
  } else {
    if (!backward_sequence(k, b)) backward_sparse(k, b);
  }
}

} // namespace reference

// SPDX-License-Identifier: Apache-2.0
//
// The layers of regatta/layers_sequence.hpp.
#include "interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace reference {
namespace {

std::size_t size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}
double cdf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

// Returns the weight of a label. Labels of 0 are ignored; by default the sum over the others is their mean, times the
// samples.
double label_weight(const batch& b, const std::vector<double>& labels) {
  if (b.label_weight != 0) return b.label_weight;
  const auto counted =
      static_cast<double>(labels.size()) - static_cast<double>(std::count(labels.begin(), labels.end(), 0.0));
  return static_cast<double>(b.samples) / std::max(1.0, counted);
}

} // namespace

bool interpreter::forward_sequence(std::size_t k, const batch& b, bool training) {
  const node& n = nodes_[k];
  const std::string_view op = n.op;
  std::vector<double>&y = values[k], &saved = saved_[k];
  const node& in = nodes_[n.inputs[0]];
  const std::vector<double>& x = values[n.inputs[0]];
  auto weight = [&](std::size_t i) -> const std::vector<double>& { return tensors[n.weights[i]]; };

  if (op == "embedding") {
    const std::size_t length = size(n.shape[0]), features = size(n.shape[1]);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t f = 0; f < features; ++f) {
        const auto t = static_cast<double>(i % length);
        double v = n.attr("scale") * weight(0)[static_cast<std::size_t>(x[i]) * features + f];
        if (n.weights.size() > 1) v += weight(1)[i % length * features + f];
        if (n.attr("sinusoids") != 0) {
          const double angle = t / std::pow(10000.0, static_cast<double>(f - f % 2) / static_cast<double>(features));
          v += f % 2 ? std::cos(angle) : std::sin(angle);
        }
        y[i * features + f] = v;
      }
  } else if (op == "gelu") {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * cdf(x[i]);
  } else if (op == "tanh") {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::tanh(x[i]);
  } else if (op == "layer_norm") {
    const std::size_t features = size(n.shape[1]), vectors = y.size() / features;
    const auto count = static_cast<double>(features);
    saved.assign(2 * vectors, 0); // mean and 1 / deviation
    for (std::size_t r = 0; r < vectors; ++r) {
      double mean = 0, variance = 0;
      for (std::size_t f = 0; f < features; ++f) mean += x[r * features + f] / count;
      for (std::size_t f = 0; f < features; ++f) variance += std::pow(x[r * features + f] - mean, 2) / count;
      const double inverse = 1 / std::sqrt(variance + n.attr("epsilon"));
      saved[2 * r] = mean;
      saved[2 * r + 1] = inverse;
      for (std::size_t f = 0; f < features; ++f)
        y[r * features + f] = (x[r * features + f] - mean) * inverse * weight(0)[f] + weight(1)[f];
    }
  } else if (op == "attention") {
    // saved: the probabilities, then what dropout multiplies them by
    const auto &key = values[n.inputs[1]], &value = values[n.inputs[2]], &words = values[n.inputs[3]];
    const std::size_t queries = size(n.shape[0]), width = size(n.shape[1]), keys = nodes_[n.inputs[3]].elements,
                      heads = static_cast<std::size_t>(n.attr("heads")), each = width / heads,
                      all = b.samples * heads * queries * keys;
    const double p = n.attr("p");
    saved.assign(2 * all, 0);
    for (std::size_t s = 0; s < b.samples; ++s)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t i = 0; i < queries; ++i) {
          const std::size_t row = (h * queries + i) * keys;
          double* probability = saved.data() + s * heads * queries * keys + row;
          const auto ignores = [&](std::size_t j) {
            return words[s * keys + j] == 0 || (n.attr("causal") != 0 && j > i);
          };
          double sum = 0, largest = -std::numeric_limits<double>::infinity(); // exp() overflows from 710 on
          for (std::size_t j = 0; j < keys; ++j) {
            probability[all + j] = p == 0 || !training                                                    ? 1
                                   : keeps(b, s, row + j, p, static_cast<std::uint32_t>(n.attr("layer"))) ? 1 / (1 - p)
                                                                                                          : 0;
            if (ignores(j)) continue;
            double product = 0;
            for (std::size_t f = h * each; f < (h + 1) * each; ++f)
              product += x[(s * queries + i) * width + f] * key[(s * keys + j) * width + f];
            largest = std::max(largest, probability[j] = product / std::sqrt(static_cast<double>(each)));
          }
          for (std::size_t j = 0; j < keys; ++j)
            if (!ignores(j)) sum += probability[j] = std::exp(probability[j] - largest);
          for (std::size_t j = 0; j < keys && sum > 0; ++j) {
            probability[j] /= sum;
            for (std::size_t f = h * each; f < (h + 1) * each; ++f)
              y[(s * queries + i) * width + f] +=
                  probability[j] * probability[all + j] * value[(s * keys + j) * width + f];
          }
        }
  } else if (op == "select_positions" || op == "first_position") {
    const std::size_t features = size(n.shape[1]), taken = size(n.shape[0]);
    for (std::size_t s = 0; s < b.samples; ++s)
      for (std::size_t m = 0; m < taken; ++m) {
        const std::size_t t = op == "first_position" ? 0 : static_cast<std::size_t>(values[n.inputs[1]][s * taken + m]);
        std::copy_n(x.data() + s * in.elements + t * features, features, y.data() + (s * taken + m) * features);
      }
  } else if (op == "token_cross_entropy") {
    const auto& labels = values[n.inputs[1]];
    const std::size_t words = size(in.shape[1]), length = size(in.shape[0]);
    const double smoothing = n.attr("smoothing"), weight_of_label = label_weight(b, labels);
    saved.assign(x.size(), 0); // probabilities
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const double* logits = x.data() + i * words;
      const double largest = *std::max_element(logits, logits + words); // exp() overflows from 710 on
      double sum = 0;
      for (std::size_t v = 0; v < words; ++v) sum += saved[i * words + v] = std::exp(logits[v] - largest);
      for (std::size_t v = 0; v < words; ++v) {
        saved[i * words + v] /= sum;
        const double wanted =
            smoothing / static_cast<double>(words) + (v == static_cast<std::size_t>(labels[i]) ? 1 - smoothing : 0);
        if (labels[i] != 0) y[i / length] -= weight_of_label * wanted * (logits[v] - largest - std::log(sum));
      }
    }
  } else {
    return false;
  }
  return true;
}

bool interpreter::backward_sequence(std::size_t k, const batch& b) {
  const node& n = nodes_[k];
  const std::string_view op = n.op;
  const std::vector<double>&dy = value_gradients[k], &saved = saved_[k];
  const node& in = nodes_[n.inputs[0]];
  const std::vector<double>& x = values[n.inputs[0]];
  std::vector<double>& dx = value_gradients[n.inputs[0]];
  auto weight = [&](std::size_t i) -> const std::vector<double>& { return tensors[n.weights[i]]; };
  auto gradient = [&](std::size_t i) -> std::vector<double>& { return gradients[n.weights[i]]; };

  if (op == "embedding") {
    const std::size_t length = size(n.shape[0]), features = size(n.shape[1]);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      gradient(0)[static_cast<std::size_t>(x[i / features]) * features + i % features] += n.attr("scale") * dy[i];
      if (n.weights.size() > 1) gradient(1)[i % (length * features)] += dy[i];
    }
  } else if (op == "gelu") {
    for (std::size_t i = 0; i < dy.size(); ++i)
      dx[i] += dy[i] * (cdf(x[i]) + x[i] * std::exp(-x[i] * x[i] / 2) / std::sqrt(2 * std::acos(-1.0)));
  } else if (op == "tanh") {
    for (std::size_t i = 0; i < dy.size(); ++i) dx[i] += dy[i] * (1 - std::pow(std::tanh(x[i]), 2));
  } else if (op == "layer_norm") {
    const std::size_t features = size(n.shape[1]);
    const auto count = static_cast<double>(features);
    for (std::size_t r = 0; r < dy.size() / features; ++r) {
      double sum = 0, product = 0;
      const double mean = saved[2 * r], inverse = saved[2 * r + 1];
      for (std::size_t f = 0; f < features; ++f) {
        const std::size_t i = r * features + f;
        const double normal = (x[i] - mean) * inverse;
        gradient(0)[f] += dy[i] * normal;
        gradient(1)[f] += dy[i];
        sum += dy[i] * weight(0)[f] / count;
        product += dy[i] * weight(0)[f] * normal / count;
      }
      for (std::size_t f = 0; f < features; ++f) {
        const std::size_t i = r * features + f;
        dx[i] += inverse * (dy[i] * weight(0)[f] - sum - (x[i] - mean) * inverse * product);
      }
    }
  } else if (op == "attention") {
    const auto &key = values[n.inputs[1]], &value = values[n.inputs[2]];
    auto &dkey = value_gradients[n.inputs[1]], &dvalue = value_gradients[n.inputs[2]];
    const std::size_t queries = size(n.shape[0]), width = size(n.shape[1]), keys = nodes_[n.inputs[3]].elements,
                      heads = static_cast<std::size_t>(n.attr("heads")), each = width / heads, all = saved.size() / 2;
    std::vector<double> dp(keys);
    for (std::size_t s = 0; s < b.samples; ++s)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t i = 0; i < queries; ++i) {
          const double* probability = saved.data() + ((s * heads + h) * queries + i) * keys;
          const std::size_t q = (s * queries + i) * width;
          double sum = 0;
          for (std::size_t j = 0; j < keys; ++j) {
            const std::size_t m = (s * keys + j) * width;
            dp[j] = 0;
            for (std::size_t f = h * each; f < (h + 1) * each; ++f) {
              dp[j] += dy[q + f] * value[m + f] * probability[all + j];
              dvalue[m + f] += dy[q + f] * probability[j] * probability[all + j];
            }
            sum += dp[j] * probability[j];
          }
          for (std::size_t j = 0; j < keys; ++j) {
            const std::size_t m = (s * keys + j) * width;
            const double ds = probability[j] * (dp[j] - sum) / std::sqrt(static_cast<double>(each));
            for (std::size_t f = h * each; f < (h + 1) * each; ++f) {
              dx[q + f] += ds * key[m + f];
              dkey[m + f] += ds * x[q + f];
            }
          }
        }
  } else if (op == "select_positions" || op == "first_position") {
    const std::size_t features = size(n.shape[1]), taken = size(n.shape[0]);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const std::size_t row = i / features;
      const std::size_t t = op == "first_position" ? 0 : static_cast<std::size_t>(values[n.inputs[1]][row]);
      dx[row / taken * in.elements + t * features + i % features] += dy[i];
    }
  } else if (op == "token_cross_entropy") {
    const auto& labels = values[n.inputs[1]];
    const std::size_t words = size(in.shape[1]), length = size(in.shape[0]);
    const double smoothing = n.attr("smoothing"), weight_of_label = label_weight(b, labels);
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const double label = labels[i / words];
      if (label == 0) continue;
      const double wanted =
          smoothing / static_cast<double>(words) + (i % words == static_cast<std::size_t>(label) ? 1 - smoothing : 0);
      dx[i] += dy[i / words / length] * weight_of_label * (saved[i] - wanted);
    }
  } else {
    return false;
  }
  return true;
}

} // namespace reference

// SPDX-License-Identifier: Apache-2.0
//
// The layers of regatta/layers_sparse.hpp.
#include "interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace reference {
namespace {

// Sums over one sample's two vectors.
struct lengths {
  double ab = 0, aa = 0, bb = 0;
  lengths(const double* a, const double* b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ab += a[i] * b[i];
      aa += a[i] * a[i];
      bb += b[i] * b[i];
    }
  }
  double product() const { return std::sqrt(aa * bb); }
  bool known() const { return product() >= 1e-12; }
};

double two_class_loss(const double* logits, double label) {
  const auto right = static_cast<std::size_t>(label);
  return std::log1p(std::exp(logits[1 - right] - logits[right]));
}

} // namespace

// Returns the number of the row with this id among those that tensors[tensor] holds.
std::size_t interpreter::row_of(std::size_t tensor, double id) const {
  const auto wanted = static_cast<std::uint64_t>(id);
  if (rows[tensor].empty()) return static_cast<std::size_t>(wanted);
  const auto at = std::lower_bound(rows[tensor].begin(), rows[tensor].end(), wanted);
  if (at == rows[tensor].end() || *at != wanted)
    throw rg::error(RG_E_OPERATION, names_[tensor] + ": row " + std::to_string(wanted) + " is not there");
  return static_cast<std::size_t>(at - rows[tensor].begin());
}

// Calls f(element of the output, element of the table) for each element that a lookup reads.
template <class F> void interpreter::each_lookup(std::size_t k, const batch& b, const F& f) const {
  const node& n = nodes_[k];
  const std::vector<double>& ids = values[n.inputs[0]];
  const auto dim = static_cast<std::size_t>(info_[n.weights[0]].shape[1]);
  const std::size_t count = nodes_[n.inputs[0]].elements;
  const bool sum = std::string_view(n.op) == "embedding_bag";
  for (std::size_t s = 0; s < b.samples; ++s)
    for (std::size_t i = 0; i < count; ++i) {
      const double id = ids[s * count + i];
      if (id == n.attr("padding")) continue;
      const std::size_t row = row_of(n.weights[0], id);
      for (std::size_t d = 0; d < dim; ++d) f(s * n.elements + (sum ? d : i * dim + d), row * dim + d);
    }
}

bool interpreter::forward_sparse(std::size_t k, const batch& b) {
  const node& n = nodes_[k];
  const std::string_view op = n.op;
  std::vector<double>& y = values[k];
  auto in = [&](std::size_t i) -> const std::vector<double>& { return values[n.inputs[i]]; };
  const std::size_t width = nodes_[n.inputs[0]].elements;

  if (op == "sparse_embedding" || op == "embedding_bag") {
    each_lookup(k, b, [&](std::size_t out, std::size_t at) { y[out] += tensors[n.weights[0]][at]; });
  } else if (op == "concat") {
    for (std::size_t s = 0, at = 0; s < b.samples; ++s)
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        const std::size_t part = nodes_[n.inputs[i]].elements;
        for (std::size_t e = 0; e < part; ++e) y[at++] = in(i)[s * part + e];
      }
  } else if (op == "softsign") {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = in(0)[i] / (1 + std::abs(in(0)[i]));
  } else if (op == "cosine") {
    for (std::size_t s = 0; s < b.samples; ++s) {
      const lengths l(&in(0)[s * width], &in(1)[s * width], width);
      y[s] = l.known() ? l.ab / l.product() : 0;
    }
  } else if (op == "softmax_cross_entropy_auc") {
    for (std::size_t s = 0; s < b.samples; ++s) y[s] = two_class_loss(&in(0)[2 * s], in(1)[s]);
  } else if (op == "pairwise_hinge") {
    for (std::size_t s = 0; s < b.samples; ++s) y[s] = std::max(0.0, n.attr("margin") - in(0)[s] + in(1)[s]);
  } else {
    return false;
  }
  return true;
}

bool interpreter::backward_sparse(std::size_t k, const batch& b) {
  const node& n = nodes_[k];
  const std::string_view op = n.op;
  const std::vector<double>& dy = value_gradients[k];
  auto in = [&](std::size_t i) -> const std::vector<double>& { return values[n.inputs[i]]; };
  auto gradient = [&](std::size_t i) -> std::vector<double>& { return value_gradients[n.inputs[i]]; };
  const std::size_t width = nodes_[n.inputs[0]].elements;

  if (op == "sparse_embedding" || op == "embedding_bag") {
    each_lookup(k, b, [&](std::size_t out, std::size_t at) { gradients[n.weights[0]][at] += dy[out]; });
  } else if (op == "concat") {
    for (std::size_t s = 0, at = 0; s < b.samples; ++s)
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        const std::size_t part = nodes_[n.inputs[i]].elements;
        for (std::size_t e = 0; e < part; ++e) gradient(i)[s * part + e] += dy[at++];
      }
  } else if (op == "softsign") {
    for (std::size_t i = 0; i < dy.size(); ++i) gradient(0)[i] += dy[i] / std::pow(1 + std::abs(in(0)[i]), 2);
  } else if (op == "cosine") {
    for (std::size_t s = 0; s < b.samples; ++s) {
      const lengths l(&in(0)[s * width], &in(1)[s * width], width);
      if (!l.known()) continue;
      for (std::size_t i = s * width; i < (s + 1) * width; ++i) {
        gradient(0)[i] += dy[s] / l.product() * (in(1)[i] - l.ab / l.aa * in(0)[i]);
        gradient(1)[i] += dy[s] / l.product() * (in(0)[i] - l.ab / l.bb * in(1)[i]);
      }
    }
  } else if (op == "softmax_cross_entropy_auc") {
    for (std::size_t s = 0; s < b.samples; ++s) {
      const auto right = static_cast<std::size_t>(in(1)[s]);
      const double wrong = 1 - std::exp(-two_class_loss(&in(0)[2 * s], in(1)[s]));
      gradient(0)[2 * s + right] -= dy[s] * wrong;
      gradient(0)[2 * s + 1 - right] += dy[s] * wrong;
    }
  } else if (op == "pairwise_hinge") {
    for (std::size_t s = 0; s < b.samples; ++s) {
      const double pull = values[k][s] > 0 ? dy[s] : 0;
      gradient(0)[s] -= pull;
      gradient(1)[s] += pull;
    }
  } else {
    return false;
  }
  return true;
}

} // namespace reference

// SPDX-License-Identifier: Apache-2.0
#include "formula_model.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace regatta {
namespace {

// Returns worker `w` of `n`'s contribution to the gradient of an element whose weight is `weight`.
template <class T> T gradient(std::uint32_t w, std::uint32_t n, std::uint64_t step, std::uint64_t element, T weight) {
  const auto noise = static_cast<T>(static_cast<int>((element * 7 + w * 31 + step * 17) % 101) - 50) / T(50);
  return (weight * T(0.1) + noise) / static_cast<T>(n);
}

std::uint64_t padded(std::int64_t elements) {
  return (static_cast<std::uint64_t>(elements) + 15) / 16 * 16;
}

// An element's place in a tensor: in a matrix with its first dimension as rows.
struct place {
  std::uint64_t index, row, column;
};
// Returns the element's place in tensor `t`; nothing if it is in another one or in padding.
std::optional<place> place_in(const simulation_setup& s, std::size_t t, std::uint64_t element) {
  if (t >= s.tensors.size()) return {};
  for (std::size_t k = 0; k < t; ++k) {
    if (element < padded(s.tensors[k])) return {};
    element -= padded(s.tensors[k]);
  }
  const auto count = static_cast<std::uint64_t>(s.tensors[t]);
  if (element >= count) return {};
  const std::uint64_t columns = s.shapes.empty() ? count : count / static_cast<std::uint64_t>(s.shapes.at(t).at(0));
  return place{element, element / columns, element % columns};
}

// The workers' parts of the flat tensor differ by matrices of full rank, whose sum over the workers is 0.
template <class T> T flat_gradient(const simulation_setup& s, std::uint32_t w, std::uint64_t step, const place& p) {
  const auto noise = [&](std::uint32_t worker) {
    return static_cast<T>(static_cast<int>((p.index * 7 + worker * 31 + step * 17) % 101) - 50) / T(200);
  };
  const T column = static_cast<T>(4 + p.row % 4) / T(16), row = static_cast<T>(4 + p.column % 3) / T(4);
  return ((p.row + p.column) % 2 ? column * row : -column * row) / static_cast<T>(s.workers) +
         (noise(w) - noise((w + 1) % s.workers)) / static_cast<T>(s.workers);
}

// The gradient of the setup's model. The pull's target values have a mean over the workers between -2 and 2.
template <class T>
T gradient(const simulation_setup& s, std::uint32_t w, std::uint64_t step, std::uint64_t element, T weight) {
  if (s.cancelling) return element % s.workers == w ? static_cast<T>(s.workers) - 1 : T(-1);
  if (s.constant) return static_cast<T>(constant_gradient(s, w, step, element));
  if (step < late_steps && place_in(s, s.late_tensor, element)) return 0;
  if (s.pull == 0)
    if (const auto p = place_in(s, s.flat_tensor, element)) return flat_gradient<T>(s, w, step, *p);
  const T g = gradient(w, s.workers, step, element, weight);
  if (s.pull == 0) return g;
  const T mean = static_cast<T>(static_cast<int>(element * 11 % 17) - 8) / T(4);
  const T own = static_cast<T>(s.pull_apart) * (static_cast<T>(w) - static_cast<T>(s.workers - 1) / T(2));
  return g + static_cast<T>(s.pull) * (weight - mean - own) / static_cast<T>(s.workers);
}

} // namespace

std::uint64_t arena_elements(const simulation_setup& setup) {
  std::uint64_t n = 0;
  for (const std::int64_t t : setup.tensors) n += padded(t);
  return n;
}

std::vector<char> padding_of(const simulation_setup& setup) {
  std::vector<char> padding;
  for (const std::int64_t t : setup.tensors) {
    padding.insert(padding.end(), static_cast<std::size_t>(t), 0);
    padding.resize(padding.size() + padded(t) - static_cast<std::uint64_t>(t), 1);
  }
  return padding;
}

std::vector<std::uint64_t> rows_touched(const simulation_setup& setup, std::uint32_t w, std::uint64_t step) {
  std::vector<std::uint64_t> rows;
  // Some rows are shared by several workers, and now and then a worker touches none.
  for (std::uint64_t k = 0; k < setup.touched && (w + step) % 5 != 4; ++k)
    rows.push_back((k * k * 7 + w * 3 + step * 11) % static_cast<std::uint64_t>(setup.table_rows));
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

namespace {

// Returns the initial weights of the arena and then of the table.
std::vector<double> initial_weights(const simulation_setup& setup) {
  const std::uint64_t arena = arena_elements(setup);
  std::vector<double> w(arena + static_cast<std::uint64_t>(setup.table_rows * setup.table_row));
  const std::vector<char> padding = padding_of(setup);
  for (std::uint64_t i = 0; i < w.size(); ++i)
    w[i] = i >= arena ? initial_weight(i - arena) : padding[i] ? 0 : initial_weight(i);
  return w;
}

} // namespace

std::vector<double> train_serially(const simulation_setup& setup) {
  const std::uint64_t arena = arena_elements(setup), row = static_cast<std::uint64_t>(setup.table_row);
  std::vector<double> w = initial_weights(setup);
  const std::uint64_t n = w.size();
  std::vector<double> v(n, 0.0), g(n);
  const std::vector<char> padding = padding_of(setup);
  for (std::uint64_t step = 0; step < setup.steps; ++step) {
    std::fill(g.begin(), g.end(), 0.0);
    std::vector<char> moves(n, 0); // rows that no worker touches keep weights and momentum
    std::fill_n(moves.begin(), arena, 1);
    for (std::uint32_t k = 0; k < setup.workers; ++k) {
      for (std::uint64_t i = 0; i < arena; ++i)
        if (!padding[i]) g[i] += gradient<double>(setup, k, step, i, w[i]);
      if (!setup.table_rows) continue;
      for (const std::uint64_t r : rows_touched(setup, k, step))
        for (std::uint64_t e = r * row; e < (r + 1) * row; ++e) {
          g[arena + e] += gradient<double>(k, setup.workers, step, e, w[arena + e]);
          moves[arena + e] = 1;
        }
    }
    double squares = 0;
    for (const double x : g) squares += x * x;
    const double clip =
        setup.optimizer.clip_norm > 0 ? std::min(1.0, setup.optimizer.clip_norm / std::sqrt(squares)) : 1.0;
    for (std::uint64_t i = 0; i < n; ++i) {
      if (!moves[i]) continue;
      v[i] = setup.optimizer.momentum * v[i] + clip * g[i];
      w[i] -= setup.optimizer.lr * v[i];
    }
  }
  return w;
}

std::vector<double> train_locally(const simulation_setup& setup, std::uint64_t k) {
  const std::uint64_t arena = arena_elements(setup), row = static_cast<std::uint64_t>(setup.table_row);
  std::vector<std::vector<double>> w(setup.workers, initial_weights(setup));
  const std::uint64_t n = w[0].size();
  std::vector<std::vector<double>> v(setup.workers, std::vector<double>(n));
  const std::vector<char> padding = padding_of(setup);
  for (std::uint64_t step = 0; step < setup.steps; ++step) {
    for (std::uint32_t r = 0; r < setup.workers; ++r) {
      const auto move = [&](std::uint64_t i, std::uint64_t element) {
        v[r][i] = setup.optimizer.momentum * v[r][i] +
                  setup.workers * gradient<double>(r, setup.workers, step, element, w[r][i]);
        w[r][i] -= setup.optimizer.lr * v[r][i];
      };
      for (std::uint64_t i = 0; i < arena; ++i)
        if (!padding[i]) move(i, i);
      if (!setup.table_rows) continue;
      for (const std::uint64_t touched : rows_touched(setup, r, step))
        for (std::uint64_t e = touched * row; e < (touched + 1) * row; ++e) move(arena + e, e);
    }
    if ((step + 1) % k && step + 1 < setup.steps) continue;
    for (std::uint64_t i = 0; i < n; ++i) {
      double mean = 0;
      for (const auto& own : w) mean += own[i] / setup.workers;
      for (auto& own : w) own[i] = mean;
    }
  }
  return w[0];
}

float initial_weight(std::uint64_t element) {
  return 0.01f * static_cast<float>(static_cast<int>(element % 13) - 6);
}

double constant_gradient(const simulation_setup& s, std::uint32_t w, std::uint64_t step, std::uint64_t element) {
  const std::uint32_t n = s.workers;
  if (step < late_steps && place_in(s, s.late_tensor, element)) return 0;
  const double large = 1 + static_cast<double>(element / 16 % 4) / 4, sign = element / 2 % 2 ? -1 : 1;
  double mean = element % 16 ? sign * (0.0025 + 0.0005 * static_cast<double>(element % 3)) : large;
  if (const auto p = place_in(s, s.flat_tensor, element))
    mean = (p->row ? 0.25 : 1) * (p->column ? (p->column % 2 ? 0.01 : -0.014) : 1);
  return mean * (1 + (w - (n - 1) / 2.0) / (2.0 * n)) / n; // the second factor's mean over the workers is 1
}

float gradient_at(const simulation_setup& setup, std::uint32_t w, std::uint64_t step, std::uint64_t element,
                  float weight) {
  return gradient<float>(setup, w, step, element, weight);
}

float gradient_of(std::uint32_t w, std::uint32_t n, std::uint64_t step, std::uint64_t element, float weight) {
  return gradient<float>(w, n, step, element, weight);
}

} // namespace regatta

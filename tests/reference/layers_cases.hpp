// SPDX-License-Identifier: Apache-2.0
//
// Shared by tests of networks: fills them, runs the executor and the reference, compares.
#pragma once

#include <executed.hpp>
#include <interpreter.hpp>

#include <regatta/ext/graph.h>
#include <regatta/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace layers_cases {

#ifndef REGATTA_EXECUTOR
#define REGATTA_EXECUTOR REGATTA_PLUGINS "/onednn.so"
#endif
// The environment may name another executor: an emulated GPU's (tests/gpu), or the real one (tests/gpu/run-all.sh).
inline const char* const other_executor = std::getenv("REGATTA_EXECUTOR_PLUGIN");
inline const std::string executor_plugin = other_executor ? other_executor : REGATTA_EXECUTOR;
// Returns the cases to test: all, or the one that the environment names, which must be among them. If that is "?", the
// names of all are printed, each in a line "layer: NAME", and none is tested.
template <class Case> std::vector<const Case*> wanted(const std::vector<Case>& cases) {
  const char* const only = std::getenv("REGATTA_LAYER");
  const bool prints = only && std::string(only) == "?";
  std::vector<const Case*> all;
  for (const Case& c : cases) {
    if (prints) std::printf("layer: %s\n", c.name);
    if (!only || std::string(only) == c.name) all.push_back(&c);
  }
  REQUIRE(all.empty() == prints);
  return all;
}
// How much further from the reference one may be that does not add up in nearly its order.
inline const double looser = std::getenv("REGATTA_LOOSER") ? std::strtod(std::getenv("REGATTA_LOOSER"), nullptr) : 1;

inline std::vector<double> normals(std::size_t count, std::uint64_t seed, double deviation = 1, double mean = 0) {
  std::vector<double> v(count);
  for (std::size_t i = 0; i < count; ++i)
    v[i] = static_cast<float>(mean + deviation * rg::random_normals(seed, i / 4, 0, 1024)[i % 4]);
  return v;
}

// A batch for the graph: normal numbers, labels drawn evenly.
inline reference::batch make_batch(const rg_graph& g, std::size_t samples, std::uint64_t seed) {
  reference::batch b;
  b.samples = samples;
  b.global_samples = samples;
  b.seed = 7;
  b.step = 3;
  for (std::uint32_t i = 0; i < g.input_count; ++i) {
    const rg_input& in = g.inputs[i];
    std::size_t count = samples;
    for (std::uint32_t d = 0; d < in.ndim; ++d) count *= static_cast<std::size_t>(in.shape[d]);
    std::vector<double> v = normals(count, seed + i);
    if (in.kind == RG_INPUT_INDEX)
      for (std::size_t k = 0; k < count; ++k)
        v[k] = rg::to_index(rg::random_bits(seed + i, k, 0, 1025)[0], static_cast<std::uint32_t>(in.range));
    b.inputs.push_back(std::move(v));
  }
  return b;
}

// Samples first .. first + count of b, as another worker would have them.
inline reference::batch part_of(const reference::batch& b, std::size_t first, std::size_t count) {
  reference::batch p = b;
  p.samples = count;
  p.first_sample = b.first_sample + first;
  for (auto& in : p.inputs) {
    const std::size_t one = in.size() / b.samples;
    in = {in.begin() + static_cast<std::ptrdiff_t>(first * one),
          in.begin() + static_cast<std::ptrdiff_t>((first + count) * one)};
  }
  return p;
}

// Weights that leave no gradient at zero by chance: normal ones around where they would start.
inline void fill(reference::interpreter& r, const rg_graph& g) {
  for (std::uint32_t t = 0; t < g.tensor_count; ++t) {
    const rg_tensor& info = g.tensors[t];
    const bool vector = info.init == RG_INIT_CONSTANT;
    r.tensors[t] = normals(r.tensors[t].size(), 100 + t, vector ? 0.1 : info.init_b, vector ? info.init_a : 0);
  }
}
inline void copy(const reference::interpreter& r, const rg_graph& g, reference::executed& e) {
  for (std::uint32_t t = 0; t < g.tensor_count; ++t) e.set(e.index_of(g.tensors[t].name), r.tensors[t]);
}

// Root of the mean square of the difference, over that of b (or over `floor` where b is as good as zero).
inline double distance(const std::vector<double>& a, const std::vector<double>& b, double floor = 1e-6) {
  REQUIRE(a.size() == b.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  const auto n = static_cast<double>(std::max<std::size_t>(1, a.size()));
  return std::sqrt(difference / n) / std::max(floor, std::sqrt(size / n));
}

// What a gradient of this tensor is measured by at least: that of a bias of attention's keys is zero but for rounding,
// since what is added to all keys changes no probability.
inline double floor_of(const std::string& name) {
  return name.ends_with(".key.bias") ? 1e-2 : 1e-6;
}

// Zero but for the rounding of doubles, as the gradient of a bias that batch norm takes away again: floats leave more.
inline bool is_zero(const std::vector<double>& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return std::abs(x) < 1e-13; });
}

// Checks the reference's gradients against finite differences of its loss.
inline void check_slopes(const rg_graph& g) {
  reference::interpreter r(g);
  fill(r, g);
  const reference::batch b = make_batch(g, 3, 2);
  r.forward(b);
  r.backward(b);
  const auto gradients = r.gradients;
  for (std::uint32_t t = 0; t < g.tensor_count; ++t) {
    if (g.tensors[t].kind == RG_TENSOR_STATE) continue;
    // The derivative along the tensor's gradient is the sum of its squares. The step is short enough to cross few
    // kinks.
    double square = 0;
    for (double v : gradients[t]) square += v * v;
    if (square < 1e-16) continue;
    const double step = 1e-6 / std::sqrt(square);
    auto moved = [&](double by) {
      for (std::size_t i = 0; i < gradients[t].size(); ++i) r.tensors[t][i] += by * gradients[t][i];
      return r.forward(b) / static_cast<double>(b.global_samples);
    };
    const double above = moved(step), below = moved(-2 * step);
    moved(step);
    CAPTURE(g.tensors[t].name);
    CHECK((above - below) / (2 * step) == doctest::Approx(square).epsilon(1e-4));
  }
}

// The executor and the reference with the same weights and a batch that is part of a larger one.
struct pair {
  pair(const rg_graph& g, const reference::execution_options& options)
      : graph(g), reference(g), executed(executor_plugin, g, options), batch(make_batch(g, options.batch, 11)) {
    fill(reference, g);
    copy(reference, g, executed);
    batch.first_sample = 5;
    batch.global_samples = 3 * options.batch;
  }
  const rg_graph& graph;
  reference::interpreter reference;
  reference::executed executed;
  reference::batch batch;
};

// One training step of both: loss, every gradient and every state must agree.
inline void compare_step(pair& p, double tolerance = 1e-5) {
  tolerance *= looser;
  auto& [g, r, e, b] = p;
  const double expected = r.forward(b);
  r.backward(b);
  const rg_step_result got = e.step(b);
  CHECK(got.loss_sum / static_cast<double>(got.count) ==
        doctest::Approx(expected / static_cast<double>(b.samples)).epsilon(tolerance));
  for (std::uint32_t t = 0; t < g.tensor_count; ++t) {
    const std::string name = g.tensors[t].name;
    CAPTURE(name);
    const std::size_t i = e.index_of(name);
    const bool dense = g.tensors[t].kind != RG_TENSOR_STATE; // or a sparse table, of which all rows are there
    const auto* memory = (dense ? e.gradients : e.weights)[i].data();
    const auto& meant = dense ? r.gradients[t] : r.tensors[t];
    CHECK(distance(e.canonical(memory, i), meant, is_zero(meant) ? 1e-2 : floor_of(name)) < tolerance);
    if (!dense) continue;
    const std::uint64_t plain = r.tensors[t].size();
    if (e.tensors[i].storage > plain && e.tensors[i].ndim == 1) // padding stays zero
      CHECK(std::all_of(memory + plain, memory + e.tensors[i].storage, [](float f) { return f == 0; }));
  }
}

// The same for a network that ends in softmax_cross_entropy, with an evaluation behind it.
inline void compare(const rg_graph& g, const reference::execution_options& options, double tolerance = 1e-5) {
  pair p(g, options);
  compare_step(p, tolerance);
  // Evaluation uses the states that training has just moved.
  const double loss = p.reference.forward(p.batch, false);
  const auto sums = p.executed.evaluate(p.batch, p.batch.samples);
  CHECK(sums[2] == doctest::Approx(loss).epsilon(looser * tolerance));
  CHECK(sums[1] == static_cast<double>(p.batch.samples));
}

} // namespace layers_cases

// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_DISABLE // of the tests' helpers, without the tests
#include "gradients.hpp"

#include "cpu.hpp"
#include "layers_cases.hpp"
#include "model_graph.hpp"

#include <cmath>
#include <stdexcept>
#include <vector>

#include <regatta/ext/graph.h>

namespace regatta::bench {
namespace {

std::vector<double> gradients_of(const rg_graph& g, std::uint64_t batch, std::uint32_t precision,
                                 std::uint32_t kernels) {
  reference::executed e(layers_cases::executor_plugin, g,
                        {.batch = batch, .kernels = kernels, .precision = precision, .emulate = true});
  e.start(1);
  e.step(layers_cases::make_batch(g, batch, 3));
  std::vector<double> all;
  for (std::size_t t = 0; t < e.tensors.size(); ++t) {
    if (e.tensors[t].kind != RG_TENSOR_DENSE) continue;
    const auto one = e.canonical(e.gradients[t].data(), t);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    length += b[i] * b[i];
  }
  return std::sqrt(difference / length);
}

} // namespace

std::optional<gradient_differences> differences_of(const std::string& file, const std::string& id,
                                                   std::uint64_t batch) {
  const rg_component& c = reference::load_component(REGATTA_PLUGINS "/" + file, RG_KIND_MODEL, id);
  if (!c.extension || !c.extension(RG_EXT_GRAPH)) return std::nullopt;
  const model_graph::graph_of net(file, id, {});
  const auto direct = gradients_of(*net.graph, batch, RG_F32, RG_KERNELS_FIXED);
  gradient_differences result{.algorithms = apart(gradients_of(*net.graph, batch, RG_F32, RG_KERNELS_TIMED), direct),
                              .bf16 = std::nullopt};
  if (test::computes_bf16()) result.bf16 = apart(gradients_of(*net.graph, batch, RG_BF16, RG_KERNELS_TIMED), direct);
  return result;
}

} // namespace regatta::bench

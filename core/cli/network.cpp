// SPDX-License-Identifier: Apache-2.0
#include "cli/network.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "registry/plugin_host.hpp"

#include <algorithm>
#include <memory>

#include <fmt/core.h>

namespace regatta {
namespace {

// What both tables of a graph have: dimensions that somebody else wrote.
template <class T> std::vector<std::int64_t> dims_of(const T& t, const std::string& what) {
  if (t.ndim > RG_MAX_DIMS || std::any_of(t.shape, t.shape + t.ndim, [](auto d) { return d < 1; }))
    throw failure(exit_code::plugin,
                  fmt::format("{}: a shape has up to {} dimensions, all positive", what, RG_MAX_DIMS));
  return {t.shape, t.shape + t.ndim};
}

double product(const std::vector<std::int64_t>& dims, std::size_t from = 0) {
  double n = 1;
  for (std::size_t i = from; i < dims.size(); ++i) n *= static_cast<double>(dims[i]);
  return n;
}

std::string text(const char* s) {
  return s ? one_line(s) : std::string("?");
}

// Forward operations of one node, given its output, its first weight and its inputs' shapes.
double forward_operations(const layer_summary& layer, const std::vector<std::int64_t>* weight,
                          const std::vector<const layer_summary*>& inputs) {
  const double places = layer.shape.empty() ? 1 : product(layer.shape) / static_cast<double>(layer.shape.back());
  if (layer.op == "dense" && weight) return 2 * product(*weight) * places; // of a sequence, each by itself
  if (layer.op == "conv2d" && weight) return 2 * product(*weight) * product(layer.shape, 1); // the kernel's stops
  if (layer.op == "attention" && inputs.size() > 1 && !inputs[1]->shape.empty()) // queries x keys, then x values
    return 4 * product(layer.shape) * static_cast<double>(inputs[1]->shape[0]);
  return 0;
}

// Adds a tensor's elements to the sums; returns its dimensions.
std::vector<std::int64_t> count_tensor(const rg_tensor& t, const std::string& what, network_summary& sum) {
  auto dims = dims_of(t, fmt::format("{}: tensor {}", what, text(t.name)));
  const auto elements = static_cast<std::uint64_t>(product(dims));
  (t.kind == RG_TENSOR_STATE ? sum.state : sum.parameters) += elements;
  if (t.kind == RG_TENSOR_ROWS && !dims.empty())
    sum.tables.push_back({text(t.name), static_cast<std::uint64_t>(dims[0]), elements});
  return dims;
}

network_summary count(const rg_graph& g, const std::string& what) {
  network_summary sum;
  sum.unit = g.unit ? one_line(g.unit) : "samples";
  std::vector<std::uint32_t> kinds;
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::uint32_t i = 0; i < g.tensor_count; ++i) {
    const auto t = rg::copy_versioned(rg::at_stride(g.tensors, i));
    kinds.push_back(t.kind);
    shapes.push_back(count_tensor(t, what, sum));
  }
  for (std::uint32_t i = 0; i < g.node_count; ++i) {
    const auto n = rg::copy_versioned(rg::at_stride(g.nodes, i));
    layer_summary layer;
    layer.name = text(n.name);
    layer.op = text(n.op);
    layer.shape = dims_of(n, fmt::format("{}: layer {}", what, layer.name));
    for (std::uint32_t w = 0; w < n.weight_count; ++w) {
      const auto index = n.weights[w];
      if (index >= shapes.size())
        throw failure(exit_code::plugin, fmt::format("{}: layer {} names weight {}, but there are {}", what, layer.name,
                                                     index, shapes.size()));
      if (kinds[index] != RG_TENSOR_STATE) layer.parameters += static_cast<std::uint64_t>(product(shapes[index]));
    }
    std::vector<const layer_summary*> inputs;
    for (std::uint32_t k = 0; k < n.input_count; ++k) {
      if (n.inputs[k] >= i)
        throw failure(exit_code::plugin, fmt::format("{}: layer {}, number {}, takes what layer {} makes", what,
                                                     layer.name, i, n.inputs[k]));
      inputs.push_back(&sum.layers[n.inputs[k]]);
    }
    layer.operations = 3 * forward_operations(layer, n.weight_count ? &shapes[n.weights[0]] : nullptr, inputs);
    sum.operations += layer.operations;
    sum.layers.push_back(std::move(layer));
  }
  return sum;
}

network_summary count(const rg_model_info& info, const std::string& what) {
  network_summary sum;
  sum.unit = info.unit ? one_line(info.unit) : "samples";
  sum.operations = info.flops_per_sample;
  for (std::uint32_t i = 0; i < info.tensor_count; ++i)
    count_tensor(rg::copy_versioned(rg::at_stride(info.tensors, i)), what, sum);
  return sum;
}

} // namespace

network_summary summarise(const component& c, const parameter_values& values) {
  const auto what = fmt::format("model {}", c.id);
  plugin_host host;
  void* self = nullptr;
  if (!c.graph.create) {
    auto setup = rg::make_versioned<rg_model_setup>();
    setup.purpose = RG_PURPOSE_INIT;
    setup.precision = RG_F32;
    setup.memory = RG_MEMORY_HOST;
    setup.threads = 1;
    setup.batch = 1;
    call(host, what, [&] { return c.model.create(host.c(), values.data(), &setup, &self); });
    const std::unique_ptr<void, void (*)(void*)> instance(self, c.model.destroy);
    auto info = rg::make_versioned<rg_model_info>();
    call(host, what, [&] { return c.model.describe(self, &info); });
    return count(info, what);
  }
  call(host, what, [&] { return c.graph.create(host.c(), values.data(), &self); });
  const std::unique_ptr<void, void (*)(void*)> instance(self, c.graph.destroy);
  const rg_graph* graph = nullptr;
  call(host, what, [&] { graph = c.graph.graph(self); });
  if (!graph || !graph->nodes || (graph->tensor_count && !graph->tensors))
    throw failure(exit_code::plugin, fmt::format("{}: it gave no graph {}", what, host.take_error()));
  return count(rg::copy_versioned(*graph), what);
}

} // namespace regatta

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

// Forward operations of one node, given its output and its first weight.
double forward_operations(const std::string& op, const std::vector<std::int64_t>& output,
                          const std::vector<std::int64_t>& weight) {
  if (op == "dense") return 2 * product(weight);
  if (op == "conv2d") return 2 * product(weight) * product(output, 1); // the kernel stops at every place once
  return 0;
}

network_summary count(const rg_graph& g, const std::string& what) {
  network_summary sum;
  sum.unit = g.unit ? one_line(g.unit) : "samples";
  std::vector<rg_tensor> tensors;
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::uint32_t i = 0; i < g.tensor_count; ++i) {
    const auto& t = tensors.emplace_back(rg::copy_versioned(rg::at_stride(g.tensors, i)));
    const auto& dims = shapes.emplace_back(dims_of(t, fmt::format("{}: tensor {}", what, text(t.name))));
    if (t.kind == RG_TENSOR_DENSE) sum.parameters += static_cast<std::uint64_t>(product(dims));
    if (t.kind == RG_TENSOR_STATE) sum.state += static_cast<std::uint64_t>(product(dims));
  }
  for (std::uint32_t i = 0; i < g.node_count; ++i) {
    const auto n = rg::copy_versioned(rg::at_stride(g.nodes, i));
    layer_summary layer;
    layer.name = text(n.name);
    layer.op = text(n.op);
    layer.shape = dims_of(n, fmt::format("{}: layer {}", what, layer.name));
    for (std::uint32_t w = 0; w < n.weight_count; ++w) {
      const auto index = n.weights[w];
      if (index >= tensors.size())
        throw failure(exit_code::plugin, fmt::format("{}: layer {} names weight {}, but there are {}", what, layer.name,
                                                     index, tensors.size()));
      if (tensors[index].kind == RG_TENSOR_DENSE)
        layer.parameters += static_cast<std::uint64_t>(product(shapes[index]));
      if (w == 0) layer.operations = 3 * forward_operations(layer.op, layer.shape, shapes[index]);
    }
    sum.operations += layer.operations;
    sum.layers.push_back(std::move(layer));
  }
  return sum;
}

} // namespace

network_summary summarise(const component& c, const parameter_values& values) {
  const auto what = fmt::format("model {}", c.id);
  plugin_host host;
  void* self = nullptr;
  call(host, what, [&] { return c.graph.create(host.c(), values.data(), &self); });
  const std::unique_ptr<void, void (*)(void*)> instance(self, c.graph.destroy);
  const rg_graph* graph = nullptr;
  call(host, what, [&] { graph = c.graph.graph(self); });
  if (!graph || !graph->nodes || (graph->tensor_count && !graph->tensors))
    throw failure(exit_code::plugin, fmt::format("{}: it gave no graph {}", what, host.take_error()));
  return count(rg::copy_versioned(*graph), what);
}

} // namespace regatta

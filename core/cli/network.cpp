// SPDX-License-Identifier: Apache-2.0
#include "cli/network.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "registry/plugin_host.hpp"
#include "registry/validate.hpp"

#include <algorithm>

#include <fmt/core.h>

#include <regatta/ext/graph.h>

namespace regatta {
namespace {

double product(const std::vector<std::int64_t>& dims, std::size_t from = 0) {
  double n = 1;
  for (std::size_t i = from; i < dims.size(); ++i) n *= static_cast<double>(dims[i]);
  return n;
}

std::string text(const char* s) {
  return one_line(s);
}

template <class T> std::vector<std::int64_t> dims_of(const T& t) {
  return {t.shape, t.shape + t.ndim};
}

// Returns the operations of one node in the forward pass, from its output, its first weight and the shapes of its
// inputs.
double forward_operations(const layer_summary& layer, const std::vector<std::int64_t>* weight,
                          const std::vector<const layer_summary*>& inputs) {
  const double positions = layer.shape.empty() ? 1 : product(layer.shape) / static_cast<double>(layer.shape.back());
  if (layer.op == "dense" && weight) return 2 * product(*weight) * positions; // for each position of a sequence
  if (layer.op == "conv2d" && weight) return 2 * product(*weight) * product(layer.shape, 1); // for each output position
  if (layer.op == "attention" && inputs.size() > 1 && !inputs[1]->shape.empty()) // queries x keys, weights x values
    return 4 * product(layer.shape) * static_cast<double>(inputs[1]->shape[0]);
  return 0;
}

// Adds the elements of a tensor to the sums; returns its dimensions.
std::vector<std::int64_t> count_tensor(const rg_tensor& t, network_summary& sum) {
  auto dims = dims_of(t);
  const auto elements = static_cast<std::uint64_t>(product(dims));
  (t.kind == RG_TENSOR_STATE ? sum.state : sum.parameters) += elements;
  if (t.kind == RG_TENSOR_ROWS && !dims.empty())
    sum.tables.push_back({text(t.name), static_cast<std::uint64_t>(dims[0]), elements});
  return dims;
}

// Requires a validated graph.
network_summary count(const rg_graph& g) {
  network_summary sum;
  sum.unit = g.unit ? one_line(g.unit) : "samples";
  std::vector<std::uint32_t> kinds;
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::uint32_t i = 0; i < g.tensor_count; ++i) {
    const auto t = rg::copy_versioned(rg::at_stride(g.tensors, i));
    kinds.push_back(t.kind);
    shapes.push_back(count_tensor(t, sum));
  }
  for (std::uint32_t i = 0; i < g.node_count; ++i) {
    const auto n = rg::copy_versioned(rg::at_stride(g.nodes, i));
    layer_summary layer;
    layer.name = text(n.name);
    layer.op = text(n.op);
    layer.shape = dims_of(n);
    for (std::uint32_t w = 0; w < n.weight_count; ++w)
      if (kinds[n.weights[w]] != RG_TENSOR_STATE)
        layer.parameters += static_cast<std::uint64_t>(product(shapes[n.weights[w]]));
    std::vector<const layer_summary*> inputs;
    for (std::uint32_t k = 0; k < n.input_count; ++k) inputs.push_back(&sum.layers[n.inputs[k]]);
    layer.operations = 3 * forward_operations(layer, n.weight_count ? &shapes[n.weights[0]] : nullptr, inputs);
    sum.operations += layer.operations;
    sum.layers.push_back(std::move(layer));
  }
  return sum;
}

network_summary count(const model_description& d) {
  network_summary sum;
  sum.unit = one_line(d.info.unit);
  sum.operations = d.info.flops_per_sample;
  for (const rg_tensor& t : d.tensors) count_tensor(t, sum);
  return sum;
}

} // namespace

network_summary summarise(const registry& plugins, const std::string& id,
                          const std::map<std::string, nlohmann::json>& chosen, const stage_function& stage) {
  const auto what = fmt::format("model {}", id);
  const auto who = fmt::format("{} ({})", what, plugins.described(kind::model, id).file.string());
  stage(who, "was being loaded");
  const component& c = plugins.find(kind::model, id);
  const parameter_values values(c, chosen);
  plugin_host host;
  void* self = nullptr;
  network_summary sum;
  stage(who, "was described");
  if (c.graph.create) {
    call(host, what, [&] { return c.graph.create(host.c(), values.data(), &self); });
    const rg_graph* graph = nullptr;
    call(host, what, [&] { graph = c.graph.graph(self); });
    if (!graph) throw failure(exit_code::plugin, fmt::format("{}: it returned no graph {}", what, host.take_error()));
    const rg_graph copy = rg::copy_versioned(*graph);
    validate(copy, what);
    sum = count(copy);
    stage(who, "was ended");
    c.graph.destroy(self);
    return sum;
  }
  auto setup = rg::make_versioned<rg_model_setup>();
  setup.purpose = RG_PURPOSE_INIT;
  setup.precision = RG_F32;
  setup.memory = RG_MEMORY_HOST;
  setup.threads = 1;
  setup.batch = 1;
  call(host, what, [&] { return c.model.create(host.c(), values.data(), &setup, &self); });
  auto info = rg::make_versioned<rg_model_info>();
  call(host, what, [&] { return c.model.describe(self, &info); });
  sum = count(validated(info, what));
  stage(who, "was ended");
  c.model.destroy(self);
  return sum;
}

} // namespace regatta

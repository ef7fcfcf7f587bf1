// SPDX-License-Identifier: Apache-2.0
#include "registry/validate.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

// In elements; small enough that sums of sizes in bytes do not overflow.
constexpr std::uint64_t most_elements = std::uint64_t{1} << 56;

template <class... T> [[noreturn]] void wrong(const std::string& what, fmt::format_string<T...> format, T&&... values) {
  throw failure(exit_code::plugin, fmt::format("{}: {}", what, fmt::format(format, std::forward<T>(values)...)));
}

void require_text(const char* text, const std::string& what, const char* field) {
  if (!text) wrong(what, "{} is null: set it to a text", field);
  if (!*text) wrong(what, "{} is empty: set it to a text", field);
}

// Throws for a table of structs that cannot be iterated.
template <class T> void require_table(const T* table, std::uint32_t count, const std::string& what, const char* field) {
  if (count > most_tensors) wrong(what, "{}_count is {}, {} is the most", field, count, most_tensors);
  if (count && !table) wrong(what, "{}_count is {}, but {}s is null", field, count, field);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto size = rg::at_stride(table, i).struct_size;
    if (i == 0 ? size < 2 * sizeof size || size > 1 << 16 : size != table->struct_size)
      wrong(what, "{} {}: struct_size is {}: set it to sizeof the struct, in all of them", field, i, size);
  }
}

// Returns the number of elements of a shape; 1 for a shape without dimensions.
std::uint64_t elements_of(const std::int64_t* shape, std::uint32_t ndim, const std::string& what) {
  if (ndim > RG_MAX_DIMS) wrong(what, "ndim is {}, {} is the most", ndim, RG_MAX_DIMS);
  std::uint64_t n = 1;
  for (std::uint32_t d = 0; d < ndim; ++d) {
    if (shape[d] < 1) wrong(what, "shape[{}] is {}: a dimension is 1 or more", d, shape[d]);
    const auto size = static_cast<std::uint64_t>(shape[d]);
    if (size > most_elements / n)
      wrong(what, "shape is [{}]: that overflows", fmt::join(std::vector(shape, shape + ndim), ", "));
    n *= size;
  }
  return n;
}

// Returns "model mlp: tensor 2 (weight)". Throws if the name is null or empty.
std::string name_of(const std::string& what, const char* field, std::uint32_t i, const char* name) {
  const auto numbered = fmt::format("{}: {} {}", what, field, i);
  require_text(name, numbered, "name");
  return fmt::format("{} ({})", numbered, one_line(name));
}

void validate(const rg_tensor& t, const std::string& what) {
  if (t.kind < RG_TENSOR_DENSE || t.kind > RG_TENSOR_STATE)
    wrong(what, "kind is {}: set it to RG_TENSOR_DENSE, _ROWS or _STATE", t.kind);
  const std::uint64_t elements = elements_of(t.shape, t.ndim, what);
  if (t.storage && (t.storage < elements || t.storage > most_elements))
    wrong(what, "storage is {}: it takes {} elements or more", t.storage, elements);
  for (const auto& [field, value] : {std::pair{"decay", t.decay}, std::pair{"lr_scale", t.lr_scale}})
    if (!std::isfinite(value)) wrong(what, "{} is {}: set it to a number", field, value);
  if (t.kind != RG_TENSOR_ROWS) return;
  if (t.ndim == 0) wrong(what, "ndim is 0: a sparse table has rows, its first dimension");
  if (t.max_rows > static_cast<std::uint64_t>(t.shape[0]))
    wrong(what, "max_rows is {}: the table has {} rows", t.max_rows, t.shape[0]);
}

void validate(const rg_input& in, const std::string& what) {
  if (in.kind != RG_INPUT_VALUES && in.kind != RG_INPUT_INDEX)
    wrong(what, "kind is {}: set it to RG_INPUT_VALUES or RG_INPUT_INDEX", in.kind);
  elements_of(in.shape, in.ndim, what);
  if (in.range < 0) wrong(what, "range is {}: set it to the number of values, such as classes", in.range);
}

std::vector<rg_tensor> tensors_of(const rg_tensor* table, std::uint32_t count, const std::string& what) {
  require_table(table, count, what, "tensor");
  std::vector<rg_tensor> all;
  std::set<std::string_view> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    const rg_tensor t = rg::copy_versioned(rg::at_stride(table, i));
    const std::string which = name_of(what, "tensor", i, t.name);
    validate(t, which);
    if (!names.insert(t.name).second) wrong(which, "name is that of another tensor: give each a name of its own");
    all.push_back(t);
  }
  return all;
}

std::vector<rg_input> inputs_of(const rg_input* table, std::uint32_t count, const std::string& what) {
  require_table(table, count, what, "input");
  std::vector<rg_input> all;
  for (std::uint32_t i = 0; i < count; ++i) {
    const rg_input in = rg::copy_versioned(rg::at_stride(table, i));
    validate(in, name_of(what, "input", i, in.name));
    all.push_back(in);
  }
  return all;
}

} // namespace

model_description validated(const rg_model_info& info, const std::string& what) {
  model_description d{info, tensors_of(info.tensors, info.tensor_count, what),
                      inputs_of(info.inputs, info.input_count, what)};
  require_text(info.unit, what, "unit");
  require_text(info.layout, what, "layout");
  if (info.count_kinds > RG_MAX_COUNTS)
    wrong(what, "count_kinds is {}, {} is the most", info.count_kinds, RG_MAX_COUNTS);
  if (info.metric_sums > most_tensors) wrong(what, "metric_sums is {}, {} is the most", info.metric_sums, most_tensors);
  if (!(info.flops_per_sample >= 0 && std::isfinite(info.flops_per_sample)))
    wrong(what, "flops_per_sample is {}: set it to a number, 0 where it is unknown", info.flops_per_sample);
  if (info.activation_bytes > most_elements)
    wrong(what, "activation_bytes is {}: set it to a size, 0 where it is unknown", info.activation_bytes);
  return d;
}

void validate(const rg_graph& g, const std::string& what) {
  tensors_of(g.tensors, g.tensor_count, what);
  inputs_of(g.inputs, g.input_count, what);
  require_table(g.nodes, g.node_count, what, "node");
  if (!g.node_count) wrong(what, "node_count is 0: the last node is the loss");
  for (std::uint32_t i = 0; i < g.node_count; ++i) {
    const rg_node n = rg::copy_versioned(rg::at_stride(g.nodes, i));
    const std::string which = name_of(what, "node", i, n.name);
    require_text(n.op, which, "op");
    elements_of(n.shape, n.ndim, which);
    const auto require_list = [&](const void* list, std::uint32_t count, const char* field) {
      if (count && !list) wrong(which, "{}_count is {}, but {}s is null", field, count, field);
      if (count > most_tensors) wrong(which, "{}_count is {}, {} is the most", field, count, most_tensors);
    };
    require_list(n.inputs, n.input_count, "input");
    require_list(n.weights, n.weight_count, "weight");
    require_list(n.attrs, n.attr_count, "attr");
    for (std::uint32_t k = 0; k < n.input_count; ++k)
      if (n.inputs[k] >= i) wrong(which, "inputs[{}] is {}: only earlier nodes can be inputs", k, n.inputs[k]);
    for (std::uint32_t k = 0; k < n.weight_count; ++k)
      if (n.weights[k] >= g.tensor_count)
        wrong(which, "weights[{}] is {}: there are {} tensors", k, n.weights[k], g.tensor_count);
    for (std::uint32_t k = 0; k < n.attr_count; ++k) require_text(n.attrs[k].name, which, "name of an attribute");
  }
}

void validate(const rg_transport_caps& caps, const std::string& what) {
  if (caps.p2p < RG_P2P_INDEPENDENT || caps.p2p > RG_P2P_NONE)
    wrong(what, "caps().p2p is {}: set it to RG_P2P_INDEPENDENT, _ORDERED or _NONE", caps.p2p);
  if (!caps.memory) wrong(what, "caps().memory is 0: set it to the memory that it can send from (RG_MEMORY_*)");
  if (caps.own_threads > most_own_threads)
    wrong(what, "caps().own_threads is {}, {} is the most", caps.own_threads, most_own_threads);
}

void validate(const rg_plan& plan, bool talks, const std::string& what) {
  if (talks && !plan.lanes) wrong(what, "plan().lanes is 0, but ranks talk: it takes 1 or more");
  if (plan.lanes > most_lanes) wrong(what, "plan().lanes is {}, {} is the most", plan.lanes, most_lanes);
  constexpr std::uint64_t most_steps = std::uint64_t{1} << 32;
  for (const auto& [field, value] : {std::pair{"period", plan.period}, std::pair{"steady_from", plan.steady_from}})
    if (value > most_steps) wrong(what, "plan().{} is {} steps, {} is the most", field, value, most_steps);
}

} // namespace regatta

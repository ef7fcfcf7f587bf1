// SPDX-License-Identifier: Apache-2.0
#include "registry/validate.hpp"

#include "base/findings.hpp"
#include "base/text.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <regatta/ext/graph.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

// In elements; small enough that sums of sizes in bytes do not overflow.
constexpr std::uint64_t most_elements = std::uint64_t{1} << 56;

// Checks one part of a plugin's description, such as "model mlp: tensor 2 (weight)", and adds what is wrong to `all`.
// The functions that return a bool return whether the part is right.
class part {
public:
  part(std::string what, findings& all) : what_(std::move(what)), all_(all) {}

  template <class... T> void wrong(fmt::format_string<T...> format, T&&... values) const {
    all_.add({exit_code::plugin, fmt::format("{}: {}", what_, fmt::format(format, std::forward<T>(values)...))});
  }
  bool has_text(const char* text, const char* field) const {
    if (!text) wrong("{} is null: set it to a text", field);
    if (text && !*text) wrong("{} is empty: set it to a text", field);
    return text && *text;
  }
  // Returns whether a table of structs can be iterated.
  template <class T> bool is_table(const T* table, std::uint32_t count, const char* field) const {
    if (!is_list(table, count, field)) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto size = rg::at_stride(table, i).struct_size;
      if (i == 0 ? size >= 2 * sizeof size && size <= 1 << 16 : size == table->struct_size) continue;
      wrong("{} {}: struct_size is {}: set it to sizeof the struct, in all of them", field, i, size);
      return false;
    }
    return true;
  }
  bool is_list(const void* list, std::uint32_t count, const char* field) const {
    if (count > most_tensors) wrong("{}_count is {}, {} is the most", field, count, most_tensors);
    if (count && !list) wrong("{}_count is {}, but {}s is null", field, count, field);
    return count <= most_tensors && (list || !count);
  }
  // Returns the number of elements of a shape, 1 for a shape without dimensions; std::nullopt if it is wrong.
  std::optional<std::uint64_t> elements_of(const std::int64_t* shape, std::uint32_t ndim) const {
    if (ndim > RG_MAX_DIMS) {
      wrong("ndim is {}, {} is the most", ndim, RG_MAX_DIMS);
      return std::nullopt;
    }
    if (ndim && !shape) {
      wrong("ndim is {}, but shape is null", ndim);
      return std::nullopt;
    }
    std::uint64_t n = 1;
    for (std::uint32_t d = 0; d < ndim; ++d) {
      if (shape[d] < 1) {
        wrong("shape[{}] is {}: a dimension is 1 or more", d, shape[d]);
        return std::nullopt;
      }
      const auto size = static_cast<std::uint64_t>(shape[d]);
      if (size > most_elements / n) {
        wrong("shape is [{}]: that overflows", fmt::join(std::vector(shape, shape + ndim), ", "));
        return std::nullopt;
      }
      n *= size;
    }
    return n;
  }
  // Returns the part "model mlp: tensor 2 (weight)". Without a name, which is an error, it is "model mlp: tensor 2".
  part inside(const char* field, std::uint32_t i, const char* name) const {
    part p(fmt::format("{}: {} {}", what_, field, i), all_);
    if (p.has_text(name, "name")) p.what_ += fmt::format(" ({})", one_line(name));
    return p;
  }

private:
  std::string what_;
  findings& all_;
};

void check_tensor(const rg_tensor& t, const part& p) {
  if (t.kind < RG_TENSOR_DENSE || t.kind > RG_TENSOR_STATE)
    p.wrong("kind is {}: set it to RG_TENSOR_DENSE, _ROWS or _STATE", t.kind);
  if (t.type != RG_F32) p.wrong("type is {}: set it to RG_F32, the only type of weights so far", t.type);
  if (t.gradient_type && t.gradient_type != RG_F32)
    p.wrong("gradient_type is {}: set it to 0 or RG_F32, the only type of gradients so far", t.gradient_type);
  const auto elements = p.elements_of(t.shape, t.ndim);
  if (elements && t.storage && (t.storage < *elements || t.storage > most_elements))
    p.wrong("storage is {}: it takes {} elements or more", t.storage, *elements);
  for (const auto& [field, value] : {std::pair{"decay", t.decay}, std::pair{"lr_scale", t.lr_scale}})
    if (!std::isfinite(value)) p.wrong("{} is {}: set it to a number", field, value);
  if (t.kind != RG_TENSOR_ROWS || !elements) return;
  if (t.ndim == 0)
    p.wrong("ndim is 0: a sparse table has rows, its first dimension");
  else if (t.max_rows > static_cast<std::uint64_t>(t.shape[0]))
    p.wrong("max_rows is {}: the table has {} rows", t.max_rows, t.shape[0]);
}

void check_input(const rg_input& in, const part& p) {
  if (in.kind != RG_INPUT_VALUES && in.kind != RG_INPUT_INDEX)
    p.wrong("kind is {}: set it to RG_INPUT_VALUES or RG_INPUT_INDEX", in.kind);
  p.elements_of(in.shape, in.ndim);
  if (in.range < 0) p.wrong("range is {}: set it to the number of values, such as classes", in.range);
}

// Returns the elements of a table of `what`, "tensor" or "input", whose names must differ.
template <class T>
std::vector<T> entries_of(const T* table, std::uint32_t count, const part& whole, const char* what,
                          void (*check)(const T&, const part&)) {
  if (!whole.is_table(table, count, what)) return {};
  std::vector<T> all;
  std::set<std::string_view> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    const T one = rg::copy_versioned(rg::at_stride(table, i));
    const part p = whole.inside(what, i, one.name);
    check(one, p);
    if (one.name && *one.name && !names.insert(one.name).second)
      p.wrong("name is that of another {}: give each a name of its own", what);
    all.push_back(one);
  }
  return all;
}

void check_node(const rg_node& n, std::uint32_t index, std::uint32_t tensors, const part& p) {
  p.has_text(n.op, "op");
  p.elements_of(n.shape, n.ndim);
  if (p.is_list(n.inputs, n.input_count, "input"))
    for (std::uint32_t k = 0; k < n.input_count; ++k)
      if (n.inputs[k] >= index) p.wrong("inputs[{}] is {}: only earlier nodes can be inputs", k, n.inputs[k]);
  if (p.is_list(n.weights, n.weight_count, "weight"))
    for (std::uint32_t k = 0; k < n.weight_count; ++k)
      if (n.weights[k] >= tensors) p.wrong("weights[{}] is {}: there are {} tensors", k, n.weights[k], tensors);
  if (p.is_list(n.attrs, n.attr_count, "attr"))
    for (std::uint32_t k = 0; k < n.attr_count; ++k) p.has_text(rg::at_stride(n.attrs, k).name, "name of an attribute");
}

} // namespace

model_description validated(const rg_model_info& info, const std::string& what) {
  findings all;
  const part p(what, all);
  model_description d{info, entries_of(info.tensors, info.tensor_count, p, "tensor", check_tensor),
                      entries_of(info.inputs, info.input_count, p, "input", check_input)};
  p.has_text(info.unit, "unit");
  p.has_text(info.layout, "layout");
  const auto holds_tokens = [](const rg_input& in) {
    return in.kind == RG_INPUT_INDEX && (in.type == RG_I32 || in.type == RG_I64);
  };
  if (info.tokens_input > d.inputs.size() || (info.tokens_input && !holds_tokens(d.inputs[info.tokens_input - 1])))
    p.wrong("tokens_input is {}: set it to 1 + the index of an input that is RG_INPUT_INDEX of type RG_I32 or RG_I64",
            info.tokens_input);
  if (info.count_kinds > RG_MAX_COUNTS) p.wrong("count_kinds is {}, {} is the most", info.count_kinds, RG_MAX_COUNTS);
  if (info.metric_sums > most_tensors) p.wrong("metric_sums is {}, {} is the most", info.metric_sums, most_tensors);
  if (!(info.flops_per_sample >= 0 && std::isfinite(info.flops_per_sample)))
    p.wrong("flops_per_sample is {}: set it to a number, 0 where it is unknown", info.flops_per_sample);
  if (info.activation_bytes > most_elements)
    p.wrong("activation_bytes is {}: set it to a size, 0 where it is unknown", info.activation_bytes);
  all.raise();
  return d;
}

void validate(const rg_graph& g, const std::string& what) {
  findings all;
  const part p(what, all);
  entries_of(g.tensors, g.tensor_count, p, "tensor", check_tensor);
  entries_of(g.inputs, g.input_count, p, "input", check_input);
  if (!g.node_count) p.wrong("node_count is 0: the last node is the loss");
  if (p.is_table(g.nodes, g.node_count, "node"))
    for (std::uint32_t i = 0; i < g.node_count; ++i) {
      const rg_node n = rg::copy_versioned(rg::at_stride(g.nodes, i));
      check_node(n, i, g.tensor_count, p.inside("node", i, n.name));
    }
  all.raise();
}

void validate(const rg_transport_caps& caps, const std::string& what) {
  findings all;
  const part p(what, all);
  if (caps.p2p < RG_P2P_INDEPENDENT || caps.p2p > RG_P2P_NONE)
    p.wrong("caps().p2p is {}: set it to RG_P2P_INDEPENDENT, _ORDERED or _NONE", caps.p2p);
  if (!caps.memory) p.wrong("caps().memory is 0: set it to the memory that it can send from (RG_MEMORY_*)");
  if (caps.own_threads > most_own_threads)
    p.wrong("caps().own_threads is {}, {} is the most", caps.own_threads, most_own_threads);
  all.raise();
}

void validate(const rg_plan& plan, bool talks, const std::string& what) {
  findings all;
  const part p(what, all);
  if (talks && !plan.lanes) p.wrong("plan().lanes is 0, but ranks talk: it takes 1 or more");
  if (plan.lanes > most_lanes) p.wrong("plan().lanes is {}, {} is the most", plan.lanes, most_lanes);
  if ((plan.flags & RG_PLAN_LOSSY) && !(plan.flags & RG_PLAN_SYNCHRONOUS))
    p.wrong("plan().flags has RG_PLAN_LOSSY without RG_PLAN_SYNCHRONOUS: add it if all workers have the same weights "
            "after every step, else omit RG_PLAN_LOSSY");
  if ((plan.flags & RG_PLAN_SYNCHRONOUS) && (plan.flags & (RG_PLAN_BOUNDED | RG_PLAN_AGREES)))
    p.wrong("plan().flags: RG_PLAN_SYNCHRONOUS promises more than RG_PLAN_BOUNDED and RG_PLAN_AGREES: omit these");
  if (plan.bound && !(plan.flags & RG_PLAN_BOUNDED)) p.wrong("plan().bound is {} without RG_PLAN_BOUNDED", plan.bound);
  constexpr std::uint64_t most_steps = std::uint64_t{1} << 32;
  for (const auto& [field, value] : {std::pair{"period", plan.period}, std::pair{"steady_from", plan.steady_from}})
    if (value > most_steps) p.wrong("plan().{} is {} steps, {} is the most", field, value, most_steps);
  all.raise();
}

} // namespace regatta

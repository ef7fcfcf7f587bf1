// SPDX-License-Identifier: Apache-2.0
//
// The C++ layer for executors. An executor compiles a graph into a model: an instance of a class as in
// regatta/model.hpp, except that its constructor may have any parameters. compile() must not return null. It throws
// rg::error: RG_E_UNSUPPORTED if the executor lacks the device, the precision or an op, where the text says which, for
// an op in the words "no op NAME"; RG_E_CONFIG if the graph is wrong.
//
//   struct interpreter {
//     using model = interpreted;
//     static constexpr std::uint32_t memory = RG_MEMORY_HOST;
//     static constexpr const char* device = "cuda";           // with RG_MEMORY_DEVICE only: the kind of device
//     static std::unique_ptr<model> compile(const rg_host* host, const rg::parameters_t<interpreter>& p,
//                                           const rg_graph& graph, const rg_model_setup& setup); // [main]
//   };
//   RG_PLUGIN("interpreter", "1.0", rg::executor<interpreter>("interpreter", "slow and plain"))
//
// `graph` and `setup` are valid during the call; the arrays and texts in the graph until the model is destroyed. The
// structs in the graph's arrays of nodes, tensors and inputs may be of another version, shorter or longer than the
// ones here: read element i with rg::copy_versioned(rg::at_stride(array, i)).
//
// A later version of an op may have more attributes, and an executor that ignores one computes another network. So
// compile() must throw RG_E_UNSUPPORTED for an attribute that it does not know: refuse_unknown_attributes() below.
#pragma once

#include <regatta/ext/graph.h>
#include <regatta/model.hpp>
#include <regatta/random.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace rg {
namespace detail::executors {

template <class E>
concept has_compile = requires(const rg_host* h, const parameters_t<E>& p, const rg_graph& g, const rg_model_setup& s) {
  { E::compile(h, p, g, s) } -> std::same_as<std::unique_ptr<typename E::model>>;
};

template <class E> struct entry {
  using M = typename E::model;
  static rg_status compile(const rg_host* host, const rg_value* values, const rg_graph* graph,
                           const rg_model_setup* setup, void** model) noexcept {
    return fence(host, [&] {
      auto m = E::compile(host, read_parameters<E>(values), copy_versioned(*graph), copy_versioned(*setup));
      *model = std::make_unique<models::instance<M>>(host, std::move(m)).release();
    });
  }
  static constexpr const char* device() {
    if constexpr ((E::memory & RG_MEMORY_DEVICE) != 0)
      return E::device;
    else
      return nullptr;
  }
  static constexpr rg_executor functions = {sizeof(rg_executor), E::memory, &compile, &models::functions<M>, device()};
};

} // namespace detail::executors

// An op that an executor implements, and the names of its attributes, with empty texts behind the last of each array.
struct op_attributes {
  std::string_view op;
  std::array<std::string_view, 8> names{}; // of attributes that are numbers
  std::array<std::string_view, 4> lists{}; // of those that are lists of numbers
  std::array<std::string_view, 4> texts{}; // of those that are texts

  bool has(std::string_view name) const { return !kind_of(name).empty(); }
  // Returns "number", "list" or "text"; an empty text for an attribute that the op does not have.
  std::string_view kind_of(std::string_view name) const {
    const auto in = [name](const auto& all) { return std::find(all.begin(), all.end(), name) != all.end(); };
    if (name.empty()) return {};
    return in(names) ? "number" : in(lists) ? "list" : in(texts) ? "text" : "";
  }
};

namespace detail::executors {

inline std::string_view text_of(const char* s) {
  return s ? s : "";
}

inline void refuse_unknown_attributes(const rg_node& node, const op_attributes& known) {
  const auto refuse = [&](const std::string& what) {
    throw error(RG_E_UNSUPPORTED,
                "layer " + std::string(text_of(node.name)) + " (" + std::string(known.op) + "): " + what);
  };
  for (std::uint32_t i = 0; i < node.attr_count; ++i) {
    const rg_attr a = copy_versioned(at_stride(node.attrs, i));
    const std::string name(text_of(a.name));
    const std::string_view kind = known.kind_of(name), got = a.text ? "text" : a.numbers ? "list" : "number";
    if (kind.empty()) refuse("this executor does not know the attribute " + name);
    if (kind != got)
      refuse("expected a " + std::string(kind) + " for the attribute " + name + ", got a " + std::string(got));
  }
}

} // namespace detail::executors

// [main] For compile(), before it reads the nodes. Throws rg::error, RG_E_UNSUPPORTED, if a node has an attribute that
// its op in `known` does not have, or one of another kind, such as a list instead of a number. The text names layer, op
// and attribute. The engine then asks the next executor. Nodes whose op is not in `known` are skipped.
inline void refuse_unknown_attributes(const rg_graph& graph, std::span<const op_attributes> known) {
  for (std::uint32_t k = 0; k < graph.node_count; ++k) {
    const rg_node n = copy_versioned(at_stride(graph.nodes, k));
    const auto op = std::find_if(known.begin(), known.end(),
                                 [&](const op_attributes& o) { return o.op == detail::executors::text_of(n.op); });
    if (op != known.end()) detail::executors::refuse_unknown_attributes(n, *op);
  }
}

// For init(): writes the initial values of `tensor`, number `number` of the graph's tensors, to `out`: elements first
// to first + out.size() - 1, counted row-major by its shape. Every executor should initialise so (ext/graph.h): models
// then start with the same weights on each, and results can be compared. Throws rg::error, RG_E_CONFIG, for an unknown
// rg_tensor.init.
inline void initial_values(const rg_tensor& tensor, std::uint32_t number, std::uint64_t first, std::uint64_t seed,
                           std::span<float> out) {
  const auto a = static_cast<float>(tensor.init_a), b = static_cast<float>(tensor.init_b);
  if (tensor.init == RG_INIT_CONSTANT) {
    std::fill(out.begin(), out.end(), a);
    return;
  }
  if (tensor.init != RG_INIT_UNIFORM && tensor.init != RG_INIT_NORMAL)
    throw error(RG_E_CONFIG, std::string(detail::executors::text_of(tensor.name)) +
                                 ": unknown rg_tensor.init, number " + std::to_string(tensor.init));
  const bool normal = tensor.init == RG_INIT_NORMAL;
  for (std::uint64_t i = first / 4 * 4; i < first + out.size(); i += 4) {
    const auto four =
        normal ? random_normals(seed, i / 4, number, stream_init) : random_uniforms(seed, i / 4, number, stream_init);
    for (std::uint64_t k = std::max(i, first); k < std::min<std::uint64_t>(i + 4, first + out.size()); ++k)
      out[k - first] = normal ? a + b * four[k - i] : a + (b - a) * four[k - i];
  }
}

// Returns the component of executor E, for RG_PLUGIN.
template <class E> rg_component executor(const char* id, const char* summary) {
  static_assert(detail::executors::has_compile<E>,
                "an executor needs: static std::unique_ptr<model> compile(const rg_host*, const parameters&, "
                "const rg_graph&, const rg_model_setup&)");
  if constexpr (detail::executors::has_compile<E>)
    if constexpr (detail::models::check<typename E::model>())
      return detail::component<E>(RG_KIND_EXECUTOR, id, summary, &detail::executors::entry<E>::functions);
  return {};
}

} // namespace rg

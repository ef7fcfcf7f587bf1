// SPDX-License-Identifier: Apache-2.0
//
// The C++ layer for executors. An executor compiles a graph into a model: an instance of a class as in
// regatta/model.hpp, except that its constructor may have any parameters. compile() reports errors by throwing
// rg::error, with the status and text that abi/model.h defines at rg_executor.compile, and must not return null.
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
#pragma once

#include <regatta/model.hpp>

#include <memory>

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

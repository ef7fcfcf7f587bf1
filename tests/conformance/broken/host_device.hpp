// SPDX-License-Identifier: Apache-2.0
//
// A "device" whose memory is the host's, with matrix products, as base of broken ones. It computes no models.
#pragma once

#include <regatta/device.hpp>
#include <regatta/executor.hpp>
#include <regatta/gemm.hpp>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace broken {

struct host_device {
  static constexpr const char* kind = "regatta_test";
  host_device(const rg_host*, std::int32_t, std::uint32_t) {}
  virtual ~host_device() = default;
  void* allocate(std::uint64_t bytes) { return std::calloc(bytes, 1); }
  void release(void* address) noexcept { std::free(address); }
  void* allocate_host(std::uint64_t bytes) { return std::malloc(bytes); }
  void release_host(void* address) noexcept { std::free(address); }
  void copy(std::uint32_t, void* to, const void* from, std::uint64_t bytes) { std::memcpy(to, from, bytes); }
  void work(std::uint32_t, const rg_work&) { throw rg::error(RG_E_UNSUPPORTED, "it has matrix products only"); }
  void wait_for(std::uint32_t, rg_fence) {}
  rg_fence record(std::uint32_t) { return 1; }
  bool passed(rg_fence) { return true; }
  void wait(rg_fence) {}
  void notify(std::uint32_t, void (*f)(void*), void* context) { f(context); }
  void gemm(std::uint32_t, const rg_gemm& what, const void* a, const void* b, void* c) {
    const rg_gemm g = mistaken(what);
    if (g.a_type == RG_BF16)
      rg::gemm(g, static_cast<const rg::bf16*>(a), static_cast<const rg::bf16*>(b), static_cast<float*>(c));
    else
      rg::gemm(g, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(c));
  }
  virtual rg_gemm mistaken(const rg_gemm& what) const { return what; }
};

struct no_model {
  rg_model_info describe() { return {}; }
  void init(std::uint32_t, std::span<const std::uint64_t>, std::uint64_t, std::span<float>) {}
  void bind(const rg_model_memory&) {}
  rg_step_result step(const rg_batch&, const rg::hooks&) { return {}; }
};

struct computes_no_models {
  struct parameters {};
  using model = no_model;
  static constexpr std::uint32_t memory = RG_MEMORY_DEVICE;
  static constexpr const char* device = host_device::kind;
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup&) {
    throw rg::error(RG_E_UNSUPPORTED, std::string("it has no op ") + graph.nodes[graph.node_count - 1].op);
  }
};

template <class D> rg_component component(const char* id, const char* summary) {
  rg_component c = rg::executor<computes_no_models>(id, summary);
  c.extension = [](const char* extension) -> const void* {
    return std::strcmp(extension, RG_EXT_DEVICE) == 0 ? rg::device_functions<D>() : nullptr;
  };
  return c;
}

} // namespace broken

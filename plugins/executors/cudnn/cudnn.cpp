// SPDX-License-Identifier: Apache-2.0
//
// The executor for NVIDIA GPUs: convolutions and attention by cuDNN, GEMMs by cuBLASLt and cuBLAS, the rest by our own
// kernels.
#include "lib/nvml.hpp"
#include "runtime/engine_device.hpp"
#include "runtime/model.hpp"

#include <cstdio>
#include <cstring>

#include <regatta/device.hpp>
#include <regatta/executor.hpp>

namespace {

rg_status count(const rg_host* host, std::uint32_t* out) noexcept {
  return rg::fence(host, [&] { *out = cuda::device_count(); });
}

rg_status describe(const rg_host* host, std::uint32_t index, char* text, std::uint64_t room) noexcept {
  return rg::fence(host, [&] {
    cudaDeviceProp p{};
    cuda::check(cudaGetDeviceProperties(&p, static_cast<int>(index)), "describing a device");
    std::snprintf(text, room, "%s, %.1f GiB, compute capability %d.%d", p.name,
                  static_cast<double>(p.totalGlobalMem) / (1 << 30), p.major, p.minor);
  });
}

rg_status topology(const rg_host* host, std::uint32_t a, std::uint32_t b, char* text, std::uint64_t room) noexcept {
  return rg::fence(host, [&] {
    std::snprintf(text, room, "%s",
                  cudnn::topology(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)).c_str());
  });
}

constexpr rg_devices devices = {sizeof(rg_devices), "cuda", &count, &describe, &topology};

struct executor {
  using model = cudnn::model;
  static constexpr std::uint32_t memory = RG_MEMORY_DEVICE;
  static constexpr const char* device = "cuda";

  static std::unique_ptr<model> compile(const rg_host* host, const rg::parameters_t<executor>&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    return std::make_unique<model>(host, graph, setup);
  }
};

rg_component component() {
  rg_component c = rg::executor<executor>("cudnn", "networks on NVIDIA GPUs, by cuDNN and cuBLAS");
  c.extension = [](const char* id) -> const void* {
    if (std::strcmp(id, RG_EXT_DEVICES) == 0) return &devices;
    if (std::strcmp(id, RG_EXT_DEVICE) == 0) return rg::device_functions<cudnn::engine_device>();
    return nullptr;
  };
  return c;
}

} // namespace

RG_PLUGIN("cudnn", "0.1.0", component())

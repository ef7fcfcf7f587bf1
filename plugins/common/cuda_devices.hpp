// SPDX-License-Identifier: Apache-2.0
//
// Turns CUDA errors into rg::error, and counts the GPUs. If none is usable, the error says why in plain words.
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>
#include <regatta/plugin.hpp>

namespace cuda {

// Throws rg::error unless `e` is cudaSuccess: RG_E_OPERATION if memory ran out, else RG_E_DEVICE. `what` names the
// operation in the error: "CUDA, copying: ...". Clears CUDA's last error.
inline void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  cudaGetLastError(); // clears the error, which the next call would report again
  throw rg::error(e == cudaErrorMemoryAllocation ? RG_E_OPERATION : RG_E_DEVICE,
                  std::string("CUDA, ") + what + ": " + cudaGetErrorString(e));
}

// Returns the number of GPUs that CUDA shows to this process, at least 1. Throws RG_E_UNSUPPORTED if there is no usable
// GPU or driver.
inline std::uint32_t device_count() {
  int count = 0; // unchanged by a call that fails
  const cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess && count > 0) return static_cast<std::uint32_t>(count);
  cudaGetLastError();
  if (e == cudaErrorNoDevice || e == cudaSuccess)
    throw rg::error(RG_E_UNSUPPORTED, "there is no NVIDIA GPU on this machine");
  if (e == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const auto text = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
    throw rg::error(RG_E_UNSUPPORTED, driver ? "the NVIDIA driver here is for CUDA " + text(driver) +
                                                   ", and this was built with " + text(runtime)
                                             : "there is no NVIDIA driver on this machine");
  }
  throw rg::error(RG_E_UNSUPPORTED, std::string("the NVIDIA GPU cannot be used: ") + cudaGetErrorString(e));
}

} // namespace cuda

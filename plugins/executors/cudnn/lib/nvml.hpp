// SPDX-License-Identifier: Apache-2.0
//
// Sensors and topology of a GPU from NVIDIA's management library (NVML). NVML comes with the driver and is loaded at
// first use.
#pragma once

#include <cstdint>
#include <string>

#include <regatta/ext/device.h>

namespace cudnn {

// [any] Reads the sensors of CUDA device `index`; NaN and "" stand for readings that the GPU lacks. May take
// milliseconds. Throws rg::error: RG_E_UNSUPPORTED if NVML is missing or does not know the GPU, RG_E_DEVICE if CUDA has
// no such device.
rg_sensors read_sensors(std::int32_t index);

// [any] Returns how CUDA device a reaches device b: "NV18", "PIX", "PXB", "PHB", "NODE" or "SYS"; if a == b, which CPUs
// are near it: "CPUs 0-31, NUMA node 0"; "" if unknown. Throws as read_sensors(); if a == b, NVML is not needed.
std::string topology(std::int32_t a, std::int32_t b);

} // namespace cudnn

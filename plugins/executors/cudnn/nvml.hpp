// SPDX-License-Identifier: Apache-2.0
//
// Sensors and topology of a GPU from NVIDIA's management library (NVML). NVML comes with the driver and is loaded at
// first use.
#pragma once

#include <cstdint>
#include <string>

#include <regatta/device.h>

namespace cudnn {

// [any] Reads the sensors of CUDA device `index`. Throws rg::error, RG_E_UNSUPPORTED, if NVML is missing or does not
// know the GPU.
rg_sensors read_sensors(std::int32_t index);

// Returns how device a reaches device b, in the format of rg_devices.topology; "" if unknown.
std::string topology(std::int32_t a, std::int32_t b);

} // namespace cudnn

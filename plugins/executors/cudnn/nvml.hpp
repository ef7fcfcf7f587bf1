// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's management library (NVML) knows of a GPU. It comes with the driver, and is loaded when it is first asked.
#pragma once

#include <cstdint>
#include <string>

#include <regatta/device.h>

namespace cudnn {

// [any] Of CUDA's device `index`. Throws rg::error, RG_E_UNSUPPORTED where there is no NVML, or it does not know the GPU.
rg_sensors read_sensors(std::int32_t index);

// As rg_devices.topology; "" where it is not known.
std::string topology(std::int32_t a, std::int32_t b);

} // namespace cudnn

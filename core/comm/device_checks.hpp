// SPDX-License-Identifier: Apache-2.0
//
// Speed of the devices (GPUs) of a host, through the executor plugins that compute on them: the same code times every
// kind of device.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "comm/plan.hpp"
#include "control/client.hpp"
#include "device/device.hpp"
#include "registry/registry.hpp"

namespace regatta::comm {

// Returns, for each kind of device that an executor computes on, the one that a run would ask first.
std::vector<device_executor> executors_of_devices(const registry& plugins);

// Times a device that computes nothing else for this process, for about a second. Writes to `to`
//   "before", "during": readings of its sensors before the first work and during matrix products, as
//                       to_json(gpu_figures) in measure/gpu.hpp; null: it has no sensors
//   "gemm": FLOP/s of matrix products in fp32 with 2 n^3 operations, n at most 4096; null: it has none
//   "copy": bytes/s of copies of 128 MiB within its memory, each byte counted once
// The two rates are the best of three windows of at least 0.1 s, because other load only lowers them. Needs 256 MiB of
// its memory. Throws failure if the device does; what was written before stays. [main]
void time_device(device& d, nlohmann::json& to);

// Times all devices of this rank's host, one after the other, with plan::devices. Returns a list with an object for
// each device: the members of time_device(), null where an error came before, and
//   "kind", "executor": of device_executor
//   "index": from 0; null: the devices could not be counted, and this object stands for all of the kind
//   "error": text; null: none
//   "absent": true if the plugin cannot be loaded here, or says that there is no such device or no driver
// Does not throw for failures of plugins; loads their files into this process. [main]
nlohmann::json check_devices(control_client& control, const plan& p);

} // namespace regatta::comm

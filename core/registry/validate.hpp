// SPDX-License-Identifier: Apache-2.0
//
// Refuses what a plugin says of itself where it cannot be true, before anything computes with it: on every way by which
// it gets into the engine (`run`, `describe`, `check`).
#pragma once

#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// Bounds beyond which a number is taken for a mistake.
inline constexpr std::uint32_t most_tensors = 1 << 20, most_lanes = 256, most_own_threads = 4096;

// A model's answer to describe(), copied and checked.
struct model_description {
  rg_model_info info;
  std::vector<rg_tensor> tensors;
  std::vector<rg_input> inputs;
};

// All throw failure (plugin) with a line for each problem: `what` ("model mlp"), the tensor or input, the field, its
// value and what it may be.
model_description validated(const rg_model_info& info, const std::string& what);
void validate(const rg_graph& graph, const std::string& what);
void validate(const rg_transport_caps& caps, const std::string& what);
// `talks`: whether any two ranks of the cluster exchange messages.
void validate(const rg_plan& plan, bool talks, const std::string& what);

} // namespace regatta

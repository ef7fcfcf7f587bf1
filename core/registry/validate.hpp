// SPDX-License-Identifier: Apache-2.0
//
// Checks descriptions that plugins return, and throws if they cannot be true. Every path by which they enter the engine
// (`run`, `describe`, `check`) calls these functions first.
#pragma once

#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// A larger number is taken for a mistake.
inline constexpr std::uint32_t most_tensors = 1 << 20, most_lanes = 256, most_own_threads = 4096;

// A copy of a model's description, checked.
struct model_description {
  rg_model_info info;
  std::vector<rg_tensor> tensors;
  std::vector<rg_input> inputs;
};

// All throw failure (plugin) with a line for each problem: `what` ("model mlp"), the tensor or input, the field, its
// value and the allowed values.
model_description validated(const rg_model_info& info, const std::string& what);
void validate(const rg_graph& graph, const std::string& what);
void validate(const rg_transport_caps& caps, const std::string& what);
// `talks` is true if any two ranks of the cluster exchange messages.
void validate(const rg_plan& plan, bool talks, const std::string& what);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Checks descriptions that plugins return. Every path by which they enter the engine (`run`, `describe`, `check`) calls
// these functions first.
#pragma once

#include <string>
#include <vector>

#include <regatta/abi.h>
#include <regatta/ext/graph.h>

namespace regatta {

// Largest numbers that are accepted; a larger one is taken for a mistake.
inline constexpr std::uint32_t most_tensors = 1 << 20, most_lanes = 256, most_own_threads = 4096;

// A checked copy of a model's description. Names and other texts still belong to the plugin.
struct model_description {
  rg_model_info info;
  std::vector<rg_tensor> tensors;
  std::vector<rg_input> inputs;
};

// All throw failure (plugin) if anything is wrong, with a line for each problem (20 at most): `what` ("model mlp"), the
// tensor or input, the field, its value and the allowed values.
model_description validated(const rg_model_info& info, const std::string& what);
void validate(const rg_graph& graph, const std::string& what);
void validate(const rg_transport_caps& caps, const std::string& what);
// `talks`: any two ranks of the cluster exchange messages; the plan then needs a lane.
void validate(const rg_plan& plan, bool talks, const std::string& what);

} // namespace regatta

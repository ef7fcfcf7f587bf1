// SPDX-License-Identifier: Apache-2.0
//
// A model's input as the sources keep it: checked, and copied because the model owns its description.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

struct data_input {
  std::string name;
  std::uint32_t kind, type;
  std::vector<std::uint64_t> shape; // of one sample
  std::uint64_t elements;           // of one sample
  std::uint64_t range;              // RG_INPUT_INDEX: at least 1 and within the type
};

// Throws failure (plugin) for an invalid description.
std::vector<data_input> checked_inputs(std::span<const rg_input> inputs);

// Returns for example "3x32x32"; "one number" for a scalar.
std::string shape_text(std::span<const std::uint64_t> shape);

} // namespace regatta

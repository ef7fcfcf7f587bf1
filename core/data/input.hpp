// SPDX-License-Identifier: Apache-2.0
//
// A model's inputs as the sources keep them: checked, and copied, because the model owns the rg_inputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

struct data_input {
  std::string name;
  std::uint32_t kind, type;         // RG_INPUT_* and the RG_* type of an element
  std::vector<std::uint64_t> shape; // of one sample
  std::uint64_t elements;           // of one sample
  std::uint64_t range;              // RG_INPUT_INDEX: indices are below it; at least 1. RG_INPUT_VALUES: 0
};

// [any] Returns the inputs in the same order. Throws failure (plugin) for an invalid name, kind, type, shape or range.
std::vector<data_input> checked_inputs(std::span<const rg_input> inputs);

// Returns a shape for messages: "3x32x32"; "one number" if it has no dimensions.
std::string shape_text(std::span<const std::uint64_t> shape);

} // namespace regatta

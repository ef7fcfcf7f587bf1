// SPDX-License-Identifier: Apache-2.0
#include "data/input.hpp"

#include "base/failure.hpp"

#include <fmt/core.h>

namespace regatta {
namespace {

// Returns the largest index + 1 that the type can hold; 0: not a type for indices.
std::uint64_t index_limit(std::uint32_t type) {
  switch (type) {
  case RG_U8: return 256;
  case RG_I32: return std::uint64_t{1} << 31;
  case RG_I64: return std::uint64_t{1} << 63;
  default: return 0;
  }
}

data_input checked(const rg_input& in) {
  data_input input{in.name ? in.name : "", in.kind, in.type, {}, 1, 0};
  const auto bad = [&](const std::string& what) {
    return failure(exit_code::plugin, fmt::format("the model's input \"{}\" {}", input.name, what));
  };
  if (input.name.empty()) throw failure(exit_code::plugin, "one of the model's inputs has no name");
  if (in.ndim > RG_MAX_DIMS) throw bad(fmt::format("has {} dimensions, more than {}", in.ndim, RG_MAX_DIMS));
  for (std::uint32_t d = 0; d < in.ndim; ++d) {
    if (in.shape[d] <= 0) throw bad(fmt::format("has {} as dimension {}", in.shape[d], d));
    const auto n = static_cast<std::uint64_t>(in.shape[d]);
    // A sample of more than 2^40 elements is a mistake; up to that no size in bytes can overflow.
    if (n > (std::uint64_t{1} << 40) / input.elements) throw bad("is larger than any memory");
    input.elements *= n;
    input.shape.push_back(n);
  }
  if (in.kind == RG_INPUT_INDEX) {
    const auto limit = index_limit(in.type);
    if (limit == 0) throw bad("is an index, but its type is none of i32, i64 and u8");
    if (in.range < 1 || static_cast<std::uint64_t>(in.range) > limit)
      throw bad(fmt::format("has a range of {}, which its type cannot hold", in.range));
    input.range = static_cast<std::uint64_t>(in.range);
  } else if (in.kind != RG_INPUT_VALUES) {
    throw bad(fmt::format("is of kind {}, which this version does not know", in.kind));
  } else if (in.type != RG_F32 && in.type != RG_I32 && in.type != RG_I64 && in.type != RG_U8) {
    throw bad("is of a type that is none of f32, i32, i64 and u8");
  }
  return input;
}

} // namespace

std::vector<data_input> checked_inputs(std::span<const rg_input> inputs) {
  std::vector<data_input> result;
  for (const auto& in : inputs) result.push_back(checked(in));
  return result;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  if (shape.empty()) return "one number";
  std::string text;
  for (const auto n : shape) text += fmt::format("{}{}", text.empty() ? "" : "x", n);
  return text;
}

} // namespace regatta

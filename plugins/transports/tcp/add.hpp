// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace tcp {

// target[i] += source[i] for `count` floats, which may be unaligned; the arrays must not overlap. The result is
// bit-identical with any instruction set.
void add_floats(std::byte* target, const std::byte* source, std::size_t count) noexcept;

} // namespace tcp

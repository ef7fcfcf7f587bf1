// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace regatta {

// [any] out[i] = in[i] * scale + offset.
void bytes_to_floats(float* out, const std::uint8_t* in, std::size_t n, float scale, float offset) noexcept;

} // namespace regatta

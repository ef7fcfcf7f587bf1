// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace regatta {

// [any] Sets out[i] = in[i] * scale + offset for i < n; in[i] is 0 to 255. `out` and `in` must not overlap.
void bytes_to_floats(float* out, const std::uint8_t* in, std::size_t n, float scale, float offset) noexcept;

} // namespace regatta

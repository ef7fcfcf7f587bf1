// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace regatta {

// Floating-point operations of one round of multiply_add(), which advances 256 values.
inline constexpr double multiply_add_flops = 2.0 * 256;

// [any] Computes x = x * a + b on 256 values, which begin at 0, `rounds` times: the load of a core's multiply-add units
// alone, without memory accesses. Returns the sum of the values: use it, so that the compiler cannot drop the work.
float multiply_add(std::size_t rounds, float a, float b);

// [any] Returns the multiply-adds of one core in FLOP/s, the best of three measurements of some milliseconds.
double measure_flops();

// [any] Returns the bytes that one core reads and writes in a second when it copies 4 MiB, which its caches
// may hold; the best of 20 measurements.
double measure_copy_rate();

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Sums of floats, for the instruction set of the CPU at run time. The order of additions does not depend on the
// instruction set, so results are bit-identical.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shm {

// target[i] += source[i] for i < count. Data may be unaligned, here and below. The arrays are the same or disjoint.
void add(float* target, const float* source, std::size_t count) noexcept;

// For i < count, stores ((terms[0][i] + terms[1][i]) + terms[2][i]) + ... in element i of all `targets`. A target may
// be one of the terms; other overlaps are not allowed. Requires at least one term. Reads each element of the terms, and
// writes each of the targets, once.
void sum_to_all(std::span<const float* const> terms, std::span<float* const> targets, std::size_t count) noexcept;

} // namespace shm

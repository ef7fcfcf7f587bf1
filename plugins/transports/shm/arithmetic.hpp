// SPDX-License-Identifier: Apache-2.0
//
// Sums of floats, for the instruction set of the CPU at run time. The order of additions does not depend on the
// instruction set, so results are bit-identical.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shm {

// target[i] += source[i]. Data may be unaligned, here and below.
void add(float* target, const float* source, std::size_t count) noexcept;

// Sums element i over all `terms` in order and stores it in element i of all `targets`, which may be the same arrays as
// the terms. Reads and writes each element once.
void sum_to_all(std::span<const float* const> terms, std::span<float* const> targets, std::size_t count) noexcept;

} // namespace shm

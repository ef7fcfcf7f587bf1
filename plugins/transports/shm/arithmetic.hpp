// SPDX-License-Identifier: Apache-2.0
//
// What the transport computes while bytes pass: sums of floats, for the instruction set of the machine it runs on.
// Each element's sum is formed in the same order whatever the instruction set: results are to the bit the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shm {

// target[i] += source[i]. Neither need be aligned, here and below.
void add(float* target, const float* source, std::size_t count) noexcept;

// Sums element i over all `terms` in their order and stores it into element i of all `targets`, which may be the same
// arrays as the terms. Reads and writes each element once.
void sum_to_all(std::span<const float* const> terms, std::span<float* const> targets, std::size_t count) noexcept;

} // namespace shm

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include <regatta/abi.h>

namespace regatta {

// Returns the matrix products of which `gemm` is the mean: those that PowerSGD (examples/custom_strategy/powersgd.cpp)
// makes with rank 4 of gradients M [side, side], and factors P and Q that it stores transposed. They are P = M Q,
// Q = M^T P, P Q^T, and P Q^T added to M. Their alpha keeps repeated products finite. [any]
std::array<rg_gemm, 4> measured_products(std::uint64_t side);

// Measures the operations of strategies on this machine, on one thread: returns ns for each byte that one reads or
// writes, by the names of timed_operations(). Matrix products have a matrix as large as the model's gradients, of
// `gradients` elements, at most 64 MiB; the others have buffers of 16 MiB. Without the optimizer's operations and those
// of sparse tables, which a training step shows. Takes about a second. [main]
std::map<std::string, double> measure_operations(std::uint64_t gradients);

} // namespace regatta

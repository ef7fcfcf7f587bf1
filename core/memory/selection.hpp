// SPDX-License-Identifier: Apache-2.0
//
// Selects the largest elements of an array by magnitude, and applies sparse updates, in host memory. Magnitudes are
// compared as integers, so NaN counts as the largest, and every result is exact and the same on every machine. [any]
// Requires that arrays have at most 2^31 - 1 elements, because indices are int32.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace regatta::selection {

// Memory of top_k() that is kept between calls, so that it rarely allocates. One call at a time may use it.
struct scratch {
  std::vector<std::uint32_t> magnitudes;
  std::vector<std::int32_t> indices;
};

// Writes the indices (to `indices`) and values of the indices.size() elements of x that are largest in magnitude, in
// ascending order of index. Among equal magnitudes the first ones are taken. Requires indices.size() <= x.size() and as
// many `values` as indices. Source: Lin et al., Deep Gradient Compression (ICLR 2018), section 3.1 and appendix, which
// samples the values to find a threshold. Here the threshold is low enough that it rarely selects too few elements, and
// the selection is then cut to exactly that number.
void top_k(std::span<const float> x, std::span<std::int32_t> indices, std::span<float> values, scratch& memory);

// Writes the indices (to `indices`) and values of all elements with a magnitude above that of `threshold`, in ascending
// order of index. Returns their number, or std::nullopt if there are more than indices.size(); the contents of
// `indices` are then undefined. Requires as many `values` as indices.
std::optional<std::size_t> above(std::span<const float> x, float threshold, std::span<std::int32_t> indices,
                                 std::span<float> values);

// For each i in order: y[indices[i]] = a, or y[indices[i]] += a * x[i]. An index may occur several times. Return false
// if an index lies outside y; then nothing was written. axpy_at() requires as many x as indices.
bool fill_at(std::span<float> y, std::span<const std::int32_t> indices, float a) noexcept;
bool axpy_at(std::span<float> y, std::span<const std::int32_t> indices, float a, std::span<const float> x) noexcept;

} // namespace regatta::selection

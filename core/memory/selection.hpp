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
  std::vector<std::int32_t> places;
};

// Writes the indices (to `places`) and values of the places.size() elements of x that are largest in magnitude, in
// ascending order of index. Among equal magnitudes the first ones are taken. Requires places.size() <= x.size() and as
// many `values` as places. Source: Lin et al., Deep Gradient Compression (ICLR 2018), section 3.1 and appendix, which
// samples the values to find a threshold. Here the threshold is low enough that it rarely selects too few elements, and
// the selection is then cut to exactly that number.
void top_k(std::span<const float> x, std::span<std::int32_t> places, std::span<float> values, scratch& memory);

// Writes the indices (to `places`) and values of all elements with a magnitude above that of `threshold`, in ascending
// order of index. Returns their number, or std::nullopt if there are more than places.size(); the contents of `places`
// are then undefined. Requires as many `values` as places.
std::optional<std::size_t> above(std::span<const float> x, float threshold, std::span<std::int32_t> places,
                                 std::span<float> values);

// For each i in order: y[places[i]] = a, or y[places[i]] += a * x[i]. An index may occur several times. Return false if
// an index lies outside y; then nothing was written. axpy_at() requires as many x as places.
bool fill_at(std::span<float> y, std::span<const std::int32_t> places, float a) noexcept;
bool axpy_at(std::span<float> y, std::span<const std::int32_t> places, float a, std::span<const float> x) noexcept;

} // namespace regatta::selection

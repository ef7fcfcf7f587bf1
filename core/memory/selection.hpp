// SPDX-License-Identifier: Apache-2.0
//
// The largest elements of an array by magnitude, and what is done with them. Magnitudes are compared as integers, so
// NaN counts as the largest and every result is exact and the same on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace regatta::selection {

// Memory kept between calls.
struct scratch {
  std::vector<std::uint32_t> magnitudes;
  std::vector<std::int32_t> places;
};

// places, values = the places.size() elements of x of largest magnitude, ascending by place; of equal ones the first.
// At most as many as x has. Source: Lin et al., Deep Gradient Compression (ICLR 2018), section 3.1 and appendix: a
// threshold from a sample of the values; here it is set so low that it rarely finds too few, and what it finds is then
// cut to exactly that many.
void top_k(std::span<const float> x, std::span<std::int32_t> places, std::span<float> values, scratch& memory);

// Likewise all with a magnitude above `threshold`; how many, or nothing where they are more than fit.
std::optional<std::size_t> above(std::span<const float> x, float threshold, std::span<std::int32_t> places,
                                 std::span<float> values);

// y[places[i]] = a, y[places[i]] += a * x[i]. False where a place lies outside y: then nothing was written.
bool fill_at(std::span<float> y, std::span<const std::int32_t> places, float a) noexcept;
bool axpy_at(std::span<float> y, std::span<const std::int32_t> places, float a, std::span<const float> x) noexcept;

} // namespace regatta::selection

// SPDX-License-Identifier: Apache-2.0
//
// Values as text for people. base/units.hpp parses sizes, times and rates.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace regatta {

// [any] Exact texts, which parse_* reads back to the same value. Bytes and nanoseconds are in the largest unit that
// divides them: 65536 -> "64KiB", 1000000 -> "1000000B", 50000 -> "50us". A rate is in the largest unit of which it is
// at least one: 1.5e9 -> "1.5Gbit/s". It must be finite; one that is no whole number of bits may be read back with an
// error in the last digit of the double.
std::string exact_bytes(std::int64_t bytes);
std::string exact_nanoseconds(std::int64_t ns);
std::string exact_bits_per_second(double rate);

// [any] Returns "0, 3 to 5, 8, 9" for ascending numbers.
std::string ranges_of(std::span<const std::uint32_t> numbers);

} // namespace regatta

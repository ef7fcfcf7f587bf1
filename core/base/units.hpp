// SPDX-License-Identifier: Apache-2.0
//
// Sizes, times and rates as text with a unit: "64KiB", "50us", "10Gbit/s". One blank may precede the unit. A text
// without unit is invalid, because TOML has numbers for that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace regatta {

// [any] Return the value in bytes, nanoseconds or bits per second. kB is 1000 bytes, KiB 1024, and B/s is 8 bit/s. The
// number may have a fraction ("1.5KiB"), an exponent ("1e3B") and a minus sign: the caller checks the range. Return
// std::nullopt if the text is no number with a unit, if the value is too large for the type, or if bytes or nanoseconds
// are not whole.
std::optional<std::int64_t> parse_bytes(std::string_view text);       // B kB (or KB) MB GB TB KiB MiB GiB TiB
std::optional<std::int64_t> parse_nanoseconds(std::string_view text); // ns us ms s min h
std::optional<double> parse_bits_per_second(std::string_view text);   // bit/s B/s, with k M G T (powers of 1000)

} // namespace regatta

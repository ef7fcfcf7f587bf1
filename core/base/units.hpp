// SPDX-License-Identifier: Apache-2.0
//
// Sizes, times and rates in the notation of people: "64KiB", "50us", "10Gbit/s". One blank may precede the unit. A text
// without unit is invalid, because TOML has numbers for that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace regatta {

// [any] Return std::nullopt if the text is no number with a unit, is no whole number of bytes or nanoseconds, or is too
// large.
std::optional<std::int64_t> parse_bytes(std::string_view text);       // B kB MB GB TB KiB MiB GiB TiB
std::optional<std::int64_t> parse_nanoseconds(std::string_view text); // ns us ms s min h
std::optional<double> parse_bits_per_second(std::string_view text);   // bit/s B/s, with k M G T

// [any] Exact texts in the largest unit that divides the value, which parse_* reads back: 65536 -> "64KiB", 50000 ->
// "50us".
std::string exact_bytes(std::int64_t bytes);
std::string exact_nanoseconds(std::int64_t ns);
std::string exact_bits_per_second(double rate);

// [any] Texts for tables with about three digits: 61018408 -> "61.0 MB", 0.00125 s -> "1.25 ms", 1e10 -> "10.0 Gbit/s".
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);
std::string human_bits_per_second(double rate);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <span>

namespace regatta {
namespace {

struct unit {
  std::string_view name;
  double factor;
};

constexpr unit byte_units[] = {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1},
                               {"TB", 1e12},    {"GB", 1e9},     {"MB", 1e6},     {"kB", 1e3},     {"KB", 1e3}};
constexpr unit time_units[] = {{"h", 3600e9}, {"min", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
constexpr unit rate_units[] = {{"Tbit/s", 1e12}, {"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}, {"bit/s", 1},
                               {"TB/s", 8e12},   {"GB/s", 8e9},   {"MB/s", 8e6},   {"kB/s", 8e3},   {"B/s", 8}};

// Long double has 64 bits of precision and holds every int64_t exactly, so that no size is off by one.
std::optional<long double> parse(std::string_view text, std::span<const unit> units) {
  long double number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || !std::isfinite(number)) return {};
  std::string_view name(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (name.starts_with(' ')) name.remove_prefix(1);
  for (const unit& u : units)
    if (u.name == name) return number * u.factor;
  return {};
}

std::optional<std::int64_t> parse_whole(std::string_view text, std::span<const unit> units) {
  const auto value = parse(text, units);
  if (!value) return {};
  const long double whole = std::round(*value);
  // 0.1us is 100 ns, though 0.1 is no binary fraction
  if (std::abs(*value - whole) > 1e-12L * std::abs(whole)) return {};
  if (whole < -0x1p63L || whole >= 0x1p63L) return {};
  return static_cast<std::int64_t>(whole);
}

} // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  return parse_whole(text, byte_units);
}
std::optional<std::int64_t> parse_nanoseconds(std::string_view text) {
  return parse_whole(text, time_units);
}

std::optional<double> parse_bits_per_second(std::string_view text) {
  const auto value = parse(text, rate_units);
  if (!value || !(std::abs(*value) <= std::numeric_limits<double>::max())) return {};
  return static_cast<double>(*value);
}

} // namespace regatta

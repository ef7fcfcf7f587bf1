// SPDX-License-Identifier: Apache-2.0
#include "text/values.hpp"

#include "base/text.hpp"
#include "base/units.hpp"

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace regatta {
namespace {

struct whole_unit {
  std::string_view name;
  std::int64_t size;
};

// The largest unit first.
constexpr whole_unit byte_units[] = {
    {"TiB", std::int64_t{1} << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}};
constexpr whole_unit time_units[] = {{"h", 3'600'000'000'000}, {"min", 60'000'000'000}, {"s", 1'000'000'000},
                                     {"ms", 1'000'000},        {"us", 1'000},           {"ns", 1}};

std::string in_largest(std::int64_t value, std::span<const whole_unit> units) {
  for (const whole_unit& u : units)
    if (value != 0 && value % u.size == 0) return fmt::format("{}{}", value / u.size, u.name);
  return fmt::format("{}{}", value, units.back().name);
}

} // namespace

std::string exact_bytes(std::int64_t bytes) {
  return in_largest(bytes, byte_units);
}
std::string exact_nanoseconds(std::int64_t ns) {
  return in_largest(ns, time_units);
}

std::string exact_bits_per_second(double rate) {
  for (const auto& [prefix, factor] : {std::pair{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1.0}}) {
    const double count = rate / factor;
    std::string text = fmt::format("{}{}bit/s", count, prefix); // above 1e15 with an exponent
    if ((std::abs(count) >= 1 || factor == 1) && parse_bits_per_second(text) == rate) return text;
  }
  // The parser rounds twice, to long double and then to double. That can miss a shortest text; 21 digits are a long
  // double's own.
  return fmt::format("{:.21g}bit/s", rate);
}

std::string ranges_of(std::span<const std::uint32_t> numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last < i + 2) last = i; // two are shown as they are
    parts.push_back(last == i ? fmt::format("{}", numbers[i]) : fmt::format("{} to {}", numbers[i], numbers[last]));
    i = last + 1;
  }
  return join(parts);
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "report/rounded.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace regatta {
namespace {

std::string human(double value, double thousand, std::span<const std::string_view> names) {
  std::size_t i = 0;
  while (i + 1 < names.size() && std::abs(value) >= 999.5) {
    value /= thousand;
    ++i;
  }
  const double size = std::abs(value);
  const int digits = size == std::floor(size) && i == 0 ? 0 : size < 9.995 ? 2 : size < 999.5 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, names[i]);
}

} // namespace

std::string human_bytes(double bytes) {
  static constexpr std::string_view names[] = {"B", "kB", "MB", "GB", "TB"};
  return human(bytes, 1000, names);
}

std::string human_seconds(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 600 && size < 0x1p63) {
    const auto whole = static_cast<std::int64_t>(size);
    return fmt::format("{}{}:{:02}:{:02} h", seconds < 0 ? "-" : "", whole / 3600, whole / 60 % 60, whole % 60);
  }
  static constexpr std::string_view names[] = {"ns", "us", "ms", "s"};
  return human(seconds * 1e9, 1000, names);
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "join/variables.hpp"

#include "base/text.hpp"

#include <charconv>
#include <vector>

#include <fmt/format.h>

namespace regatta {

std::optional<std::uint16_t> port_of(const std::string& text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && at == end && port != 0 ? std::optional(port) : std::nullopt;
}

std::string variables::text(const char* name) const {
  const char* value = get_(name);
  return value ? value : "";
}

std::optional<std::uint32_t> variables::number(const char* name) const {
  const std::string value = text(name);
  if (value.empty()) return {};
  std::uint32_t n = 0;
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, n);
  if (error != std::errc() || at != end)
    throw failure(exit_code::usage,
                  fmt::format("expected a number in the environment's {}, got \"{}\"", name, one_line(value)));
  return n;
}

std::optional<launched_pair> variables::pair(const std::string& launcher, const char* rank_name,
                                             const char* size_name) const {
  const auto rank = number(rank_name), size = number(size_name);
  if (!rank && !size) return {};
  if (!rank) throw half_set(launcher, size_name, rank_name);
  if (!size) throw half_set(launcher, rank_name, size_name);
  if (*rank >= *size)
    throw failure(exit_code::usage, fmt::format("{}={} in the environment, but {}={}: expected a number below it",
                                                rank_name, *rank, size_name, *size));
  return launched_pair{rank_name, size_name, *rank, *size};
}

std::string variables::said(std::initializer_list<const char*> names) const {
  std::vector<std::string> set;
  for (const char* name : names)
    if (has(name)) set.push_back(fmt::format("{}={}", name, one_line(text(name))));
  return join(set);
}

std::string variables::or_unset(std::initializer_list<const char*> names) const {
  std::vector<std::string> set;
  for (const char* name : names)
    if (has(name)) set.emplace_back(name);
  return "To run on this host alone, unset " + join(set, " and ");
}

failure variables::half_set(const std::string& launcher, const char* set, const char* missing) const {
  return {exit_code::usage, fmt::format("{} in the environment, but {} is not set: {} sets both. Set {}. {}",
                                        said({set}), missing, launcher, missing, or_unset({set}))};
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "registry/parameters.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "registry/registry.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

bool is_text(const rg_param& p) {
  return p.type == RG_PARAM_STRING || p.type == RG_PARAM_STRINGS;
}

bool is_number(const rg_param& p) {
  return p.type != RG_PARAM_BOOL && !is_text(p);
}

bool in_bounds(const rg_param& p, double v) {
  return std::isfinite(v) && (!is_bounded(p) || (v >= p.min && v <= p.max));
}

std::optional<json> accept_integer(const rg_param& p, const json& given) {
  std::optional<std::int64_t> v;
  if (given.is_number_unsigned()) {
    if (given.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      v = given.get<std::int64_t>();
  } else if (given.is_number_integer()) {
    v = given.get<std::int64_t>();
  } else if (given.is_string() && p.unit == RG_UNIT_BYTES) {
    v = parse_bytes(given.get_ref<const std::string&>());
  } else if (given.is_string() && p.unit == RG_UNIT_NANOSECONDS) {
    v = parse_nanoseconds(given.get_ref<const std::string&>());
  }
  if (!v || !in_bounds(p, static_cast<double>(*v))) return std::nullopt;
  return json(*v);
}

std::optional<json> accept_float(const rg_param& p, const json& given) {
  std::optional<double> v;
  if (given.is_number())
    v = given.get<double>();
  else if (given.is_string() && p.unit == RG_UNIT_BITS_PER_SECOND)
    v = parse_bits_per_second(given.get_ref<const std::string&>());
  if (!v || !in_bounds(p, *v)) return std::nullopt;
  return json(*v);
}

std::optional<json> accept_string(const rg_param& p, const json& given) {
  if (!given.is_string()) return std::nullopt;
  const auto& text = given.get_ref<const std::string&>();
  if (text.find('\0') != std::string::npos) return std::nullopt; // the plugin would read only the part before it
  if (!p.choices) return given;
  for (const auto& c : choices_of(p))
    if (text == c) return given;
  return std::nullopt;
}

std::optional<json> accept_list(const rg_param& p, const json& given) {
  if (p.type == RG_PARAM_STRINGS && given.is_string()) return accept_list(p, json::array({given}));
  if (!given.is_array()) return std::nullopt;
  json all = json::array();
  for (const auto& e : given) {
    auto one = p.type == RG_PARAM_INTS     ? accept_integer(p, e)
               : p.type == RG_PARAM_FLOATS ? accept_float(p, e)
                                           : accept_string(p, e);
    if (!one) return std::nullopt;
    all.push_back(std::move(*one));
  }
  return all;
}

// Parses a plugin's default. For these types a TOML literal is a JSON literal, as long as numbers are finite.
json parse_literal(const char* text) {
  try {
    return parse_json(text);
  } catch (const failure&) {
    return json(json::value_t::discarded);
  }
}

std::string bounds_text(const rg_param& p) {
  if (!is_bounded(p)) return {};
  const bool low = std::isfinite(p.min), high = std::isfinite(p.max);
  if (low && high) return fmt::format(" from {} to {}", p.min, p.max);
  if (low) return fmt::format(" from {} up", p.min);
  return high ? fmt::format(" up to {}", p.max) : std::string{};
}

} // namespace

std::vector<std::string> choices_of(const rg_param& p) {
  std::vector<std::string> all;
  for (auto c = p.choices; c && *c; ++c) all.emplace_back(*c);
  return all;
}

bool is_bounded(const rg_param& p) noexcept {
  const bool none = (std::isnan(p.min) && std::isnan(p.max)) || (p.min == 0 && p.max == 0);
  return !none;
}

std::string type_name(const rg_param& p) {
  switch (p.type) {
  case RG_PARAM_BOOL: return "bool";
  case RG_PARAM_INT: return "integer";
  case RG_PARAM_FLOAT: return "float";
  case RG_PARAM_STRING: return "string";
  case RG_PARAM_INTS: return "list of integers";
  case RG_PARAM_FLOATS: return "list of floats";
  case RG_PARAM_STRINGS: return "list of strings";
  default: return fmt::format("type {}", p.type);
  }
}

std::string expectation(const rg_param& p) {
  switch (p.type) {
  case RG_PARAM_BOOL: return "true or false";
  case RG_PARAM_INT:
    if (p.unit == RG_UNIT_BYTES) return "a size in bytes or such as \"64KiB\"" + bounds_text(p);
    if (p.unit == RG_UNIT_NANOSECONDS) return "a time in nanoseconds or such as \"50us\"" + bounds_text(p);
    return "an integer" + bounds_text(p);
  case RG_PARAM_FLOAT:
    if (p.unit == RG_UNIT_BITS_PER_SECOND) return "a rate in bit/s or such as \"10Gbit/s\"" + bounds_text(p);
    return "a number" + bounds_text(p);
  case RG_PARAM_STRING:
  case RG_PARAM_STRINGS: {
    auto all = choices_of(p);
    for (auto& c : all) c = '"' + c + '"';
    if (p.type == RG_PARAM_STRINGS) return all.empty() ? "a list of strings" : "a list of " + join(all);
    return all.empty() ? "a string" : all.size() == 1 ? all[0] : "one of " + join(all);
  }
  case RG_PARAM_INTS: return "a list of integers" + bounds_text(p);
  case RG_PARAM_FLOATS: return "a list of numbers" + bounds_text(p);
  default: return "nothing that this version knows";
  }
}

std::optional<json> accept(const rg_param& p, const json& given) {
  switch (p.type) {
  case RG_PARAM_BOOL: return given.is_boolean() ? std::optional<json>(given) : std::nullopt;
  case RG_PARAM_INT: return accept_integer(p, given);
  case RG_PARAM_FLOAT: return accept_float(p, given);
  case RG_PARAM_STRING: return accept_string(p, given);
  case RG_PARAM_INTS:
  case RG_PARAM_FLOATS:
  case RG_PARAM_STRINGS: return accept_list(p, given);
  default: return std::nullopt;
  }
}

json default_of(const rg_param& p) {
  if (!p.default_value) return nullptr;
  return accept(p, parse_literal(p.default_value)).value_or(json(nullptr));
}

std::string contradiction(const rg_param& p) {
  if (p.type < RG_PARAM_BOOL || p.type > RG_PARAM_STRINGS) return fmt::format("is of unknown type {}", p.type);
  if (p.unit > RG_UNIT_BITS_PER_SECOND) return fmt::format("has the unknown unit {}", p.unit);
  const auto unit_type = p.unit == RG_UNIT_BITS_PER_SECOND ? RG_PARAM_FLOAT : RG_PARAM_INT;
  if (p.unit != RG_UNIT_NONE && p.type != static_cast<std::uint32_t>(unit_type))
    return fmt::format("has a unit that goes with {} only, but is {}",
                       unit_type == RG_PARAM_INT ? "integers" : "floats", type_name(p));
  if (std::isnan(p.min) != std::isnan(p.max)) return "has one bound and a NaN: use an infinity for no bound";
  if (is_bounded(p) && !is_number(p)) return fmt::format("has bounds, but is {}", type_name(p));
  if (p.min > p.max) return fmt::format("has min {} above max {}", p.min, p.max);
  if (p.choices && !is_text(p)) return fmt::format("has choices, which only strings may have, but is {}", type_name(p));
  if (p.choices) {
    const auto all = choices_of(p);
    if (all.empty()) return "has an empty list of choices: nothing would be allowed";
    std::set<std::string_view> seen;
    for (const auto& c : all)
      if (!seen.insert(c).second) return fmt::format("has the choice \"{}\" twice", c);
  }
  if (!p.default_value) return {};
  const auto value = parse_literal(p.default_value);
  if (value.is_discarded())
    return fmt::format("has the malformed default {}: write it as in TOML, strings in quotes", p.default_value);
  if (!accept(p, value)) return fmt::format("has the default {}, but must be {}", p.default_value, expectation(p));
  return {};
}

// ------------------------------------------------------------------------------------------------------- values ---

rg_value parameter_values::add(const rg_param& p, const json& value) {
  rg_value v{};
  switch (p.type) {
  case RG_PARAM_BOOL: v.i = value.get<bool>(); break;
  case RG_PARAM_INT: v.i = value.get<std::int64_t>(); break;
  case RG_PARAM_FLOAT: v.f = value.get<double>(); break;
  case RG_PARAM_STRING: v.s = strings_.emplace_back(value.get<std::string>()).c_str(); break;
  case RG_PARAM_INTS:
    v.ints = ints_.emplace_back(value.get<std::vector<std::int64_t>>()).data();
    v.count = ints_.back().size();
    break;
  case RG_PARAM_FLOATS:
    v.floats = floats_.emplace_back(value.get<std::vector<double>>()).data();
    v.count = floats_.back().size();
    break;
  case RG_PARAM_STRINGS: {
    auto& pointers = lists_of_strings_.emplace_back();
    for (const json& e : value) pointers.push_back(strings_.emplace_back(e.get<std::string>()).c_str());
    v.strings = pointers.data();
    v.count = pointers.size();
    break;
  }
  default: break;
  }
  return v;
}

parameter_values::parameter_values(const component& c, const std::map<std::string, json>& chosen) {
  const auto where = fmt::format("{} {}", name_of(c.kind), c.id);
  std::vector<std::string> known;
  for (const auto& p : c.parameters) {
    known.emplace_back(p.name);
    const auto given = chosen.find(p.name);
    if (given == chosen.end() && !p.default_value)
      throw failure(exit_code::usage, fmt::format("{}: {} must be given: {}", where, p.name, expectation(p)));
    const auto value = given == chosen.end() ? default_of(p) : accept(p, given->second).value_or(json());
    if (value.is_null())
      throw failure(exit_code::usage,
                    fmt::format("{}: {}: expected {}, got {}", where, p.name, expectation(p), given->second.dump()));
    values_.push_back(add(p, value));
  }
  for (const auto& [name, value] : chosen)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw failure(exit_code::usage,
                    fmt::format("{}: unknown parameter {}{}", where, name, did_you_mean(name, known)));
}

} // namespace regatta

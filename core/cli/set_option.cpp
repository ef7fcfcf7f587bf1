// SPDX-License-Identifier: Apache-2.0
#include "cli/set_option.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace regatta {

nlohmann::json value_of_option(const std::string& text) {
  try {
    return parse_json(text);
  } catch (const failure&) {
    return text; // a string without quotes: the shell removed them
  }
}

std::map<std::string, nlohmann::json> read_set(const std::vector<std::string>& set) {
  std::map<std::string, nlohmann::json> values;
  for (const auto& s : set) {
    const auto equals = s.find('=');
    if (equals == std::string::npos || equals == 0)
      throw failure(exit_code::usage, fmt::format("--set {}: expected name=value", one_line(s)));
    values[s.substr(0, equals)] = value_of_option(s.substr(equals + 1));
  }
  return values;
}

} // namespace regatta

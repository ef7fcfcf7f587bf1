// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

namespace regatta::test {

json parsed(const std::string& text, bool may_fail) {
  return json::parse(text, nullptr, !may_fail);
}

std::string text_of(const json& j) {
  return j.dump();
}

} // namespace regatta::test

doctest::String doctest::StringMaker<nlohmann::json>::convert(const nlohmann::json& j) {
  return j.dump().c_str();
}

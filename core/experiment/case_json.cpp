// SPDX-License-Identifier: Apache-2.0
//
// A case as the JSON that its ranks receive: one member for each key of the schema.
#include "base/failure.hpp"
#include "experiment/schema.hpp"

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;

// Keys that apply to the whole experiment are not part of a case.
bool of_case(const schema_key& key) {
  return key.path() != "experiment.plugin_path";
}

} // namespace

json to_json(const case_config& c) {
  json j = json::object();
  for (const schema_key& key : schema())
    if (of_case(key)) j[key.section()][key.leaf()] = read(key, {}, c);
  for (const kind s : plugin_sections) j[std::string(name_of(s))]["parameters"] = choice_of(c, s).parameters;
  j["swept"] = c.swept;
  return j;
}

case_config case_from_json(const json& j) {
  try {
    case_config c;
    experiment whole;
    for (const schema_key& key : schema())
      if (of_case(key)) assign(key, j.at(key.section()).at(key.leaf()), whole, c);
    for (const kind s : plugin_sections)
      j.at(std::string(name_of(s))).at("parameters").get_to(choice_of(c, s).parameters);
    j.at("swept").get_to(c.swept);
    return c;
  } catch (const json::exception& e) {
    throw failure(exit_code::run,
                  fmt::format("a job of this version has all keys of a case, this one does not: {}", e.what()));
  }
}

} // namespace regatta

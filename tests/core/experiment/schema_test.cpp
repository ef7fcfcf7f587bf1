// SPDX-License-Identifier: Apache-2.0
//
// The table of keys: what is stored through a key is read through it, and through no other.
#include "experiment/schema.hpp"
#include "json.hpp"

#include <set>

#include <doctest/doctest.h>

using namespace regatta;
using nlohmann::json;

namespace {

// Returns a value of the key's type that is not its default.
json other_than(const json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) return value.get<std::string>() + "x";
  if (value.is_array()) return json::array({"1"});
  if (value.is_number_float()) return value.get<double>() + 0.5;
  return value.get<std::int64_t>() + 1;
}

} // namespace

TEST_CASE("keys have names of their own, a section's stand together, and each has help") {
  std::set<std::string> paths, closed;
  std::string section;
  for (const schema_key& key : schema()) {
    CAPTURE(key.path());
    CHECK(paths.insert(key.path()).second);
    CHECK(key.path() == key.section() + "." + key.leaf());
    CHECK_FALSE(std::string(key.rule.help).empty());
    if (key.section() != section) {
      CHECK(closed.insert(section).second);
      CHECK(closed.count(key.section()) == 0);
      section = key.section();
    }
  }
  CHECK(paths.size() > 50);
}

TEST_CASE("a value that is stored through a key is read through it, and changes no other key") {
  for (const schema_key& key : schema()) {
    CAPTURE(key.path());
    experiment whole;
    case_config point;
    json value = other_than(read(key, whole, point));
    if (value.is_array() && key.rule.type == RG_PARAM_FLOATS) value = json::array({1.5});
    assign(key, value, whole, point);
    CHECK(read(key, whole, point) == value);
    for (const schema_key& other : schema())
      if (other.path() != key.path()) {
        CAPTURE(other.path());
        CHECK(read(other, whole, point) == read(other, {}, {}));
      }
  }
}

TEST_CASE("a section that chooses a plugin has the choice of its kind") {
  case_config c;
  choice_of(c, kind::model).id = "m";
  choice_of(c, kind::strategy).id = "s";
  choice_of(c, kind::transport).id = "t";
  CHECK(c.model.id == "m");
  CHECK(c.strategy.id == "s");
  CHECK(c.transport.id == "t");
}

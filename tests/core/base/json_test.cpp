// SPDX-License-Identifier: Apache-2.0
//
// JSON and CBOR from untrusted sources.
#include "base/json.hpp"

#include "base/failure.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace regatta;
using nlohmann::json;

namespace {

template <class F> std::string refusal(F f) {
  try {
    f();
  } catch (const failure& e) {
    return e.what();
  }
  return {};
}

std::string nested(std::size_t deep) {
  return std::string(deep, '[') + std::string(deep, ']');
}

} // namespace

TEST_CASE("JSON and CBOR that nest too deep are refused") {
  CHECK(parse_json(nested(64)).is_array());
  CHECK(refusal([] { parse_json(nested(65)); }) == "JSON nested more than 64 deep");
  CHECK(refusal([] { parse_json(nested(200'000)); }) == "JSON nested more than 64 deep");
  CHECK(refusal([] { parse_json(std::string(200'000, '[')); }) == "JSON nested more than 64 deep");
  CHECK(refusal([] { parse_json(R"({"a": {"b": [1]}})", 2); }) == "JSON nested more than 2 deep");
  CHECK(parse_json(R"([{"a": [1]}, {"b": [2]}, "[[[["])", 3).size() == 3); // depth, not number
  CHECK(refusal([] { parse_cbor(std::vector<std::uint8_t>(200'000, 0x81)); }) == "CBOR nested more than 64 deep");
}

TEST_CASE("valid JSON and CBOR are read, others are refused with a reason") {
  const json value = {{"a", {1, -2, 3.5, "text", nullptr, true}}, {"b", json::binary({1, 2})}};
  CHECK(parse_cbor(json::to_cbor(value)) == value);
  const json text = {{"a", {1, -2, 3.5, "\xc3\xa9", nullptr, true}}};
  CHECK(parse_json(text.dump()) == text);
  CHECK(parse_json(" 5 ") == 5);
  CHECK(refusal([] { parse_json(""); }).starts_with("no JSON: "));
  CHECK(refusal([] { parse_json("{\"a\": \n}"); }).find("line 2") != std::string::npos);
  CHECK(refusal([] { parse_json("{} {}"); }).starts_with("no JSON: "));
  CHECK(refusal([] { parse_cbor(std::vector<std::uint8_t>{0x82, 0x01}); }).starts_with("no CBOR: "));
}

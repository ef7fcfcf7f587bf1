// SPDX-License-Identifier: Apache-2.0
//
// Parses JSON and CBOR from other programs. nlohmann's functions on a value (dump, copies, comparisons) and its CBOR
// parser recurse, so unlimited depth would exhaust the stack.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace regatta {

// Default limit of nesting, in levels; Regatta's own documents have less than ten.
inline constexpr int deepest_json = 64;

// [any] Returns the value of a whole text. Throws failure (run) if it is not exactly one JSON value in UTF-8, or if
// arrays and objects nest more than `max_depth` levels deep.
nlohmann::json parse_json(std::string_view text, int max_depth = deepest_json);
// [any] As parse_json(), for CBOR. Does not check that strings are UTF-8: dump() throws on such a string by default.
nlohmann::json parse_cbor(std::span<const std::uint8_t> bytes, int max_depth = deepest_json);

// [any] Returns a json or ordered_json as indented text that ends in a newline. Replaces bytes that are not UTF-8,
// which texts of plugins may contain.
template <class Json> std::string document_text(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Returns the text, or null if it is empty.
inline nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

} // namespace regatta

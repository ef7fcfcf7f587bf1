// SPDX-License-Identifier: Apache-2.0
//
// JSON and CBOR that somebody else wrote. nlohmann's functions on a value (dump, copies, comparisons) and its reader of
// CBOR recurse: unbounded depth ends the stack.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

namespace regatta {

// Our own documents nest less than ten deep.
inline constexpr int deepest_json = 64;

// Throws failure (run) where the text is no JSON or nests arrays and objects deeper than `max_depth`. [any]
nlohmann::json parse_json(std::string_view text, int max_depth = deepest_json);
// As parse_json, of CBOR. [any]
nlohmann::json parse_cbor(std::span<const std::uint8_t> bytes, int max_depth = deepest_json);

} // namespace regatta

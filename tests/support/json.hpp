// SPDX-License-Identifier: Apache-2.0
//
// JSON for tests. Parsing and printing are compiled once, in json.cpp: they take a second of compilation in each file.
#pragma once

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace regatta::test {

using nlohmann::json;

// The document, or an exception that says where it ends to be one; with `may_fail` a discarded value instead.
json parsed(const std::string& text, bool may_fail = false);

std::string text_of(const json& j);

} // namespace regatta::test

// The text that doctest prints for a value in a failed check.
template <> struct doctest::StringMaker<nlohmann::json> { static String convert(const nlohmann::json& j); };

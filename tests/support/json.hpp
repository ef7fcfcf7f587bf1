// SPDX-License-Identifier: Apache-2.0
//
// JSON as tests use it. Parsing and printing are compiled once, in json.cpp: elsewhere they would take a second a file.
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

// What doctest prints of a value that a check names.
template <> struct doctest::StringMaker<nlohmann::json> { static String convert(const nlohmann::json& j); };

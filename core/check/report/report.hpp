// SPDX-License-Identifier: Apache-2.0
//
// Renders the document of `regatta check` (schema regatta.check/1, described in docs/conformance.md) as a file for
// people, for programs or for CI. Texts of a plugin in it may be anything.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace regatta::conformance {

// [any] Returns whether report_text() knows the format: the name ends in .html, .json, .xml or .junit.
bool has_report_format(const std::filesystem::path& file);

// [any] Returns the document in the format of the file's name. Requires has_report_format(file).
std::string report_text(const std::filesystem::path& file, const nlohmann::ordered_json& document);

// [any] Returns one HTML page that loads nothing and needs no script.
std::string html_report(const nlohmann::ordered_json& document);

// [any] Returns XML as JUnit writes it and CI systems read it: one test suite for the file and one for each component.
// A test that had not run is an <error>.
std::string junit_report(const nlohmann::ordered_json& document);

} // namespace regatta::conformance

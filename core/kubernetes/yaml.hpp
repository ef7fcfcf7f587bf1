// SPDX-License-Identifier: Apache-2.0
//
// Writes JSON values as YAML for people: nested blocks, comments, texts of several lines as they are.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace regatta {

// Comments by the place of a member: all keys and indices from the root, each after a '/': "/spec/containers/0/name".
// Lines are separated by '\n'.
using yaml_comments = std::map<std::string, std::string>;

// [any] Returns the value as a YAML document without "---". Parsers of YAML 1.1 and 1.2 read it back to the same value.
// A text is quoted unless no parser can take it for another type; a text of several lines is a literal block, unless
// that would change it. Each comment stands above its member, indented like it. Numbers must be integers or finite.
// Requires that texts are valid UTF-8, and that `value` is an object or array that is not empty.
std::string yaml_text(const nlohmann::ordered_json& value, const yaml_comments& comments = {});

// [any] Returns the lines of the text, each as a comment behind `indent` blanks: "# line\n". Characters that control a
// terminal are replaced.
std::string yaml_comment(std::string_view text, std::size_t indent = 0);

} // namespace regatta

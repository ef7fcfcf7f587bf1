// SPDX-License-Identifier: Apache-2.0
//
// Small things about names and lines that messages are made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Edit distance: insertions, deletions, substitutions and swaps of neighbours, each 1 (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate that somebody who wrote `name` most likely meant; empty where none is near (a third of the name may be
// wrong, at least one letter; the beginning of a name, from three letters on, will do; case and '-' for '_' count for
// nothing).
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

// `, did you mean "x"?`, or nothing where no candidate is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// "a, b, c"
std::string join(const std::vector<std::string>& items, std::string_view separator = ", ");

// The text between newlines; one that ends with a newline has no empty line behind it.
std::vector<std::string> lines_of(std::string_view text);

// Length of the UTF-8 sequence that `text` begins with; 0 where it begins with none (overlong forms and surrogates
// are none). Requires that `text` is not empty.
std::size_t utf8_sequence(std::string_view text);

// Foreign text as a terminal may show it: control characters (C0, DEL, C1), line separators, characters that change the
// direction of text, and bytes that are not UTF-8 become a space each. Valid UTF-8 stays otherwise.
std::string cleaned(std::string_view text);

// Foreign text as part of one line: cleaned(), and the ends are trimmed.
std::string one_line(std::string_view text);

} // namespace regatta

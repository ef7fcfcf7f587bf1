// SPDX-License-Identifier: Apache-2.0
//
// Functions on names and lines, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Returns the edit distance: insertions, deletions, substitutions and swaps of neighbours count 1 each (optimal string
// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the candidate that `name` most likely means; empty if none is near. Up to a third of the name may be wrong,
// or one letter; a prefix of three or more letters matches; case, and '-' in place of '_', are ignored.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

// Returns `, did you mean "x"?`, or an empty text if no candidate is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// Returns "a, b, c".
std::string join(const std::vector<std::string>& items, std::string_view separator = ", ");

// Returns the lines of `text` without their newlines. A newline at the end adds no empty line.
std::vector<std::string> lines_of(std::string_view text);

// Returns the length of the UTF-8 sequence at the begin of `text`; 0 if there is none (overlong forms and surrogates
// are invalid). Requires that `text` is not empty.
std::size_t utf8_sequence(std::string_view text);

// Makes foreign text safe for a terminal: replaces each control character (C0, DEL, C1), line separator, character that
// changes the direction of text, and byte that is not UTF-8, by a space. Other valid UTF-8 is kept.
std::string cleaned(std::string_view text);

// Makes foreign text safe as part of one line: cleaned(), then trimmed at both ends.
std::string one_line(std::string_view text);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Functions on names and lines, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Returns the edit distance in bytes: an insertion, deletion, substitution or swap of neighbours counts 1 (optimal
// string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the candidate that `name` most likely means; empty if none is near: an equal one; else, if `name` has three
// or more bytes, the first that begins with it; else the one with the least edit distance, the first of several. A
// distance of a third of the name's length is allowed, and of 1 in short names. Case is ignored, and '-' equals '_'.
// Names and candidates of more than 200 bytes are never near.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

// Returns `, did you mean "x"?`, or an empty text if no candidate is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

// Returns the items with the separator between them: "a, b, c".
std::string join(const std::vector<std::string>& items, std::string_view separator = ", ");

// Returns the parts of `text` between the separators, one more than there are separators; parts may be empty.
std::vector<std::string> split(std::string_view text, char separator);

// Returns the lines of `text` without their newlines. A newline at the end adds no empty line.
std::vector<std::string> lines_of(std::string_view text);

// Returns the length in bytes of the UTF-8 sequence with which `text` begins; 0 if it begins with none (overlong forms
// and surrogates are invalid). Requires that `text` is not empty.
std::size_t utf8_sequence(std::string_view text);

// Returns foreign text made safe for a terminal. Replaces by a space: each control character (C0 with newline and tab,
// DEL, C1), each Unicode line or paragraph separator, each character that changes the direction of text, U+FFFE and
// U+FFFF, which XML forbids, and each byte that is not valid UTF-8. Keeps all other characters.
std::string cleaned(std::string_view text);

// Returns cleaned(text) without spaces at both ends, as a part of one line.
std::string one_line(std::string_view text);

} // namespace regatta

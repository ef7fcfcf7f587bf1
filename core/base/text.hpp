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

// Foreign text as part of one line: line breaks and other control characters become spaces, the ends are trimmed.
std::string one_line(std::string_view text);

} // namespace regatta

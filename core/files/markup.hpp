// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace regatta {

// [any] Returns foreign text as content, or as an attribute value in quotes, of HTML and of XML 1.0: each line is
// cleaned(), characters that XML forbids become spaces, and markup is escaped. Lines stay lines, but a newline
// at the end is dropped.
std::string markup_text(std::string_view text);

} // namespace regatta

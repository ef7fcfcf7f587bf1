// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace regatta {

// [any] Returns foreign text as content, or as an attribute value in quotes, of HTML and of XML 1.0: in each line,
// control characters and others that are unsafe or that XML forbids become spaces (cleaned()), and markup is escaped.
// Lines stay lines, but one newline at the end is dropped.
std::string markup_text(std::string_view text);

} // namespace regatta

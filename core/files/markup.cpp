// SPDX-License-Identifier: Apache-2.0
#include "files/markup.hpp"

#include <vector>

#include "base/text.hpp"

namespace regatta {
namespace {

std::string_view escaped_character(std::string_view sequence) {
  if (sequence == "&") return "&amp;";
  if (sequence == "<") return "&lt;";
  if (sequence == ">") return "&gt;";
  if (sequence == "\"") return "&quot;";
  if (sequence == "'") return "&#39;";
  return sequence; // cleaned() has replaced the characters that XML 1.0 forbids
}

} // namespace

std::string markup_text(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string& raw : lines_of(text)) {
    const std::string line = cleaned(raw);
    std::string& safe = lines.emplace_back();
    for (std::size_t at = 0; at < line.size();) {
      const std::string_view sequence =
          std::string_view(line).substr(at, utf8_sequence(std::string_view(line).substr(at)));
      safe += escaped_character(sequence);
      at += sequence.size();
    }
  }
  return join(lines, "\n");
}

} // namespace regatta

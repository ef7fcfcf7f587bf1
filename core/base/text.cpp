// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include <fmt/format.h>

namespace regatta {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  std::iota(previous.begin(), previous.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(previous);
    previous.swap(row);
  }
  return previous[b.size()];
}

namespace {

std::string folded(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

} // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  // Longer names are not typing errors, and the table would only cost time and memory.
  constexpr std::size_t longest = 200;
  if (name.size() > longest) return {};
  const std::string wanted = folded(name);
  const auto same =
      std::find_if(candidates.begin(), candidates.end(), [&](const std::string& c) { return folded(c) == wanted; });
  if (same != candidates.end()) return *same;
  std::size_t best = std::max<std::size_t>(1, name.size() / 3) + 1;
  std::string found;
  for (const auto& c : candidates) {
    if (c.size() > longest) continue;
    if (wanted.size() >= 3 && folded(c).starts_with(wanted)) return c;
    if (auto d = edit_distance(wanted, folded(c)); d < best) {
      best = d;
      found = c;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  auto near = nearest(name, candidates);
  return near.empty() ? near : ", did you mean \"" + near + "\"?";
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  return fmt::to_string(fmt::join(items, separator));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t end; (end = text.find(separator)) != std::string_view::npos; text.remove_prefix(end + 1))
    parts.emplace_back(text.substr(0, end));
  parts.emplace_back(text);
  return parts;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

namespace {

// Returns whether a terminal executes this valid sequence instead of showing it, or XML does not allow it.
bool is_control(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (sequence.size() == 2) return (byte(0) == 0xc2 && byte(1) < 0xa0) || sequence == "\xd8\x9c"; // C1; U+061C
  if (sequence.size() != 3) return false;
  if (byte(0) == 0xef) return byte(1) == 0xbf && byte(2) >= 0xbe; // U+FFFE, U+FFFF
  if (byte(0) != 0xe2) return false;
  if (byte(1) == 0x80) return (byte(2) >= 0x8e && byte(2) <= 0x8f) || (byte(2) >= 0xa8 && byte(2) <= 0xae); // U+200E,
  return byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9; // U+200F, U+2028 to U+202E; U+2066 to U+2069
}

} // namespace

std::string cleaned(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0 || is_control(text.substr(0, length)))
      out += ' ';
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string out = cleaned(text);
  auto end = out.find_last_not_of(' ');
  out.erase(end == std::string::npos ? 0 : end + 1);
  out.erase(0, std::min(out.find_first_not_of(' '), out.size()));
  return out;
}

} // namespace regatta

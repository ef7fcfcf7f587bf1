// SPDX-License-Identifier: Apache-2.0
#include "experiment/source_positions.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace regatta {
namespace {

// Returns "data.path" for "data.path: there is no such file" and "model.plugin" for "model resnet: no such depth";
// empty if the text begins with neither a key nor a plugin.
std::string leading_key(const std::string& text) {
  for (const std::string section : {"model", "strategy", "transport"})
    if (text.starts_with(section + " ")) return section + ".plugin";
  const auto end = text.find(": ");
  if (end == std::string::npos) return {};
  const std::string key = text.substr(0, end);
  const bool fits = std::ranges::all_of(
      key, [](unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; });
  return fits && key.find('.') != std::string::npos && key.front() != '.' ? key : std::string{};
}

} // namespace

const std::string* source_positions::find(const std::string& key) const {
  if (const auto found = swept_.find(key); found != swept_.end()) return &found->second;
  if (!written_) return nullptr;
  const auto found = written_->find(key);
  return found == written_->end() ? nullptr : &found->second;
}

std::string source_positions::before(const std::string& text) const {
  if (file_.empty()) return text;
  std::vector<std::string> lines = lines_of(text);
  for (std::string& line : lines)
    if (!line.starts_with(' ')) line = before_line(line); // else it belongs to the line before: a table's row
  return join(lines, "\n");
}

std::string source_positions::reason_of(const failure& f) const {
  return f.code() == exit_code::usage ? before(f.what()) : f.what();
}

std::string source_positions::before_line(const std::string& text) const {
  const std::string key = leading_key(text);
  const auto with = [&](const std::string& place) {
    if (!place.starts_with("--")) return fmt::format("{}: error: {}", place, text);
    return text.starts_with(key) ? fmt::format("{} {}", place, text) : fmt::format("{} {}: {}", place, key, text);
  };
  if (key.empty()) return with(file_);
  for (const std::string& name : {key, key.substr(0, key.find('.'))})
    if (const std::string* place = find(name)) return with(*place);
  return with(file_ + ":1:1");
}

std::string source_positions::notice(const std::string& key, const std::string& text) const {
  const std::string* place = find(key);
  if (!place) return fmt::format("{}: notice: {} {}", file_, key, text);
  return place->starts_with("--") ? fmt::format("notice: {} {} {}", *place, key, text)
                                  : fmt::format("{}: notice: {} {}", *place, key, text);
}

} // namespace regatta

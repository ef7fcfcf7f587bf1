// SPDX-License-Identifier: Apache-2.0
#include "config/diagnostics.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

void diagnostics::add(const origin& from, const std::string& path, const std::string& text) {
  wrong_ = true;
  line l;
  l.option = !from.option.empty();
  l.at = from.at;
  const std::string what = path.empty() ? text : fmt::format("{}: {}", one_line(path), text);
  if (l.option)
    l.text = fmt::format("{} {}", from.option, what);
  else if (from.at.line == 0)
    l.text = fmt::format("{}: error: {}", file_, what);
  else
    l.text = fmt::format("{}:{}:{}: error: {}", file_, from.at.line, from.at.column, what);
  if (std::find(lines_.begin(), lines_.end(), l) == lines_.end()) lines_.push_back(std::move(l));
}

void diagnostics::add_missing(const origin& from, const std::string& path, const std::string& text) {
  const bool wrong = wrong_;
  add(from, path, text);
  wrong_ = wrong;
  missing_ = true;
}

void diagnostics::raise(const std::vector<std::string>& notes) const {
  std::vector<line> sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const line& a, const line& b) {
    return a.option != b.option ? b.option : !a.option && a.at < b.at;
  });
  std::vector<std::string> texts;
  for (const line& l : sorted) texts.push_back(l.text);
  texts.insert(texts.end(), notes.begin(), notes.end());
  throw failure(wrong_ ? exit_code::usage : exit_code::plugin, join(texts, "\n"));
}

} // namespace regatta

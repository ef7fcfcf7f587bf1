// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/mapped_file.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// The lines of one or several text files, accessed by number from 0. Lines end in \n or \r\n. The functions are [any].
class text_file {
public:
  // `path` is a file, or a folder whose files are read in the order of their names; files that begin with a dot,
  // folders in it, and Regatta's caches (*.vocabulary, *.subwords) are ignored. If `first_lines` is not 0, only so many
  // lines in all are kept. Throws failure (usage) if there is no file, or one cannot be read.
  explicit text_file(const std::filesystem::path& path, std::uint64_t first_lines = 0);

  std::uint64_t lines() const noexcept { return starts_.size(); }
  // Returns line `i`, which must be below lines(), without its end; valid as long as this object.
  std::string_view line(std::uint64_t i) const noexcept;
  // Returns "FILE:LINE" of line `i` for messages, counted from 1 within its file.
  std::string position(std::uint64_t i) const;
  // Return the path that was given, and a text of the names, sizes and modification times of the files, to find out
  // later whether one has changed.
  const std::filesystem::path& path() const noexcept { return path_; }
  const std::string& state() const noexcept { return state_; }

private:
  struct part {
    std::uint64_t first; // number of its first line
    mapped_file file;
  };
  const part& holder(std::uint64_t line) const noexcept;

  std::filesystem::path path_;
  std::string state_;
  std::vector<part> parts_;
  std::vector<const char*> starts_;
};

// Returns the parts of a line between separators, at least one; parts may be empty. They point into `line`.
inline std::vector<std::string_view> split_at(std::string_view line, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = line.find(separator)) != std::string_view::npos; line.remove_prefix(end + 1))
    parts.push_back(line.substr(0, end));
  parts.push_back(line);
  return parts;
}

// Calls f(word) for each word between spaces and tabs, in order; words are not empty and point into `line`.
template <class F> void each_word(std::string_view line, F f) {
  constexpr std::string_view blank = " \t";
  for (std::size_t begin; (begin = line.find_first_not_of(blank)) != std::string_view::npos;) {
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(blank), line.size());
    f(line.substr(0, end));
    line.remove_prefix(end);
  }
}

} // namespace regatta

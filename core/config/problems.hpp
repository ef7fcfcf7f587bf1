// SPDX-License-Identifier: Apache-2.0
//
// The errors of an experiment, collected so that all are shown at once.
#pragma once

#include "config/document.hpp"

#include <string>
#include <vector>

namespace regatta {

// Where a value was written: in the file, or in an option ("--set", "--sweep").
struct origin {
  std::string option; // empty: in the file
  position at;
};

class problems {
public:
  explicit problems(std::string file) : file_(std::move(file)) {}

  // `text` says what was expected and what came. An error that two cases of a sweep share is kept once.
  void add(const origin& from, const std::string& path, const std::string& text);
  // Adds an error of a file that is right, but names a plugin that is not there.
  void add_missing(const origin& from, const std::string& path, const std::string& text);
  bool none() const { return lines_.empty(); }
  // Throws failure with all errors, in the order of the file, then those of options, then `notes`.
  [[noreturn]] void raise(const std::vector<std::string>& notes) const;
  bool missing() const { return missing_; }

private:
  struct line {
    bool option = false;
    position at;
    std::string text;
    auto operator<=>(const line&) const = default;
  };
  std::string file_;
  std::vector<line> lines_;
  bool missing_ = false, wrong_ = false;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Collects the errors of an experiment, so that all are shown at once.
#pragma once

#include "config/toml_document.hpp"

#include <string>
#include <vector>

namespace regatta {

// Where a value was written: in the file, or in an option ("--set", "--sweep").
struct origin {
  std::string option; // empty: in the file
  position at;
};

class diagnostics {
public:
  // `file` is the file's name in messages.
  explicit diagnostics(std::string file) : file_(std::move(file)) {}

  // Adds the error "FILE:LINE:COL: error: PATH: TEXT", without a position "FILE: error: ...", for an option "--set
  // PATH: TEXT". `path` is the key; empty if the error is about no key. `text` says what was expected and what came. An
  // equal error is kept once, because cases of a sweep share errors.
  void add(const origin& from, const std::string& path, const std::string& text);
  // Adds an error as add() does, for a file that is correct but names a plugin that is not installed.
  void add_missing(const origin& from, const std::string& path, const std::string& text);
  bool none() const { return lines_.empty(); }
  // Throws failure with one line for each error, in the order of the file, then those of options, then the lines
  // `notes`. Its exit code is usage; plugin if all errors come from add_missing(). Requires at least one error.
  [[noreturn]] void raise(const std::vector<std::string>& notes) const;
  bool missing() const { return missing_; } // whether add_missing() was called

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

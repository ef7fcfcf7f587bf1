// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace regatta {

// Splits a stream into lines for messages: without characters that control a terminal, without line ends, and without
// empty lines. Longer lines than `longest` are split.
class line_splitter {
public:
  static constexpr std::size_t longest = 4096;

  explicit line_splitter(std::function<void(const std::string&)> line) : line_(std::move(line)) {}

  void feed(std::string_view text) {
    for (const char c : text) {
      if (c == '\n' || partial_.size() == longest) flush();
      if (c != '\n' && c != '\r') partial_ += c;
    }
  }

  // Passes on text at the end that has no newline.
  void flush() {
    if (partial_.empty()) return;
    const std::string line = cleaned(std::exchange(partial_, {}));
    last_ = line;
    line_(line);
  }

  const std::string& last() const noexcept { return last_; }

private:
  std::function<void(const std::string&)> line_;
  std::string partial_, last_;
};

} // namespace regatta

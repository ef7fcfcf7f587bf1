// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace regatta {

// Splits a stream of bytes into lines for messages. Empty lines and all carriage returns are dropped, and cleaned()
// (base/text.hpp) replaces characters that control a terminal. Lines of more than `longest` bytes are split.
class line_splitter {
public:
  static constexpr std::size_t longest = 4096;

  // feed() and flush() call `line` for each line before they return.
  explicit line_splitter(std::function<void(const std::string&)> line) : line_(std::move(line)) {}

  void feed(std::string_view text) {
    for (const char c : text) {
      if (c == '\n' || partial_.size() == longest) flush();
      if (c != '\n' && c != '\r') partial_ += c;
    }
  }

  // Passes on text that no newline has ended yet. Call it at the end of the stream.
  void flush() {
    if (partial_.empty()) return;
    const std::string line = cleaned(std::exchange(partial_, {}));
    last_ = line;
    line_(line);
  }

  // Returns the last line that was passed on; empty before the first. Valid until the next feed() or flush().
  const std::string& last() const noexcept { return last_; }

private:
  std::function<void(const std::string&)> line_;
  std::string partial_, last_;
};

} // namespace regatta

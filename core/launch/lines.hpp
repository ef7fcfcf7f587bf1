// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace regatta {

// Cuts a stream into lines, for people: cleaned of what a terminal obeys, without their ends, without empty ones, a very
// long one in pieces.
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

  // What came without a newline at the end is a line, too.
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

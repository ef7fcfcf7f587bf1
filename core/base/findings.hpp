// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/failure.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace regatta {

// Collects failures, so that a user sees all of them at once and not one a run. [any]
class findings {
public:
  // Keeps each line of the failure's text; a line that is known counts once.
  void add(const failure& f);
  // Calls f() and keeps the failure that it throws. Other exceptions pass.
  template <class F> void attempt(F&& f) {
    try {
      f();
    } catch (const failure& e) {
      add(e);
    }
  }
  bool none() const noexcept { return lines_.empty(); }
  // Throws one failure with a line for each finding, the first twenty of them, and with the exit code that counts most
  // (see exit_code). Does nothing where there is none.
  void raise() const;

private:
  std::vector<std::string> lines_;
  std::size_t left_out_ = 0;
  exit_code code_ = exit_code::done;
};

} // namespace regatta

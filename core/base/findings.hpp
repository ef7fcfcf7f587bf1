// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/failure.hpp"

#include <string>
#include <unordered_set>
#include <vector>

namespace regatta {

// Collects failures, so that one run shows all of them to the user. Not synchronised: each thread uses its own.
class findings {
public:
  // Adds each line of the failure's text as a finding, unless an equal line was added before; and remembers the
  // failure's exit code.
  void add(const failure& f);
  // Calls f() and adds the failure that it throws, if any. Other exceptions propagate.
  template <class F> void attempt(F&& f) {
    try {
      f();
    } catch (const failure& e) {
      add(e);
    }
  }
  bool none() const noexcept { return lines_.empty(); }
  // Returns if there are no findings. Otherwise throws one failure: the first twenty findings, one a line, then the
  // number of the others. Its exit code is the worst of the added failures' (worse_exit_code()).
  void raise() const;

private:
  std::vector<std::string> lines_; // the first of all_, in the order in which they were added
  std::unordered_set<std::string> all_;
  exit_code code_ = exit_code::done;
};

} // namespace regatta

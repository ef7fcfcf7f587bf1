// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

namespace regatta {

// The program's exit codes. run: a run failed, or results could not be written; usage: the command line or the
// experiment is wrong; plugin: a plugin is missing or unusable; wrong: results are wrong, for example replicas differ;
// gate: a comparison failed a gate; skipped: nothing could run or be tested here; interrupted: by a signal.
// worse_exit_code() decides between several.
enum class exit_code { done = 0, run = 1, usage = 2, plugin = 3, wrong = 4, gate = 5, skipped = 77, interrupted = 130 };

// [any] Returns the one of two exit codes with which the program ends: the first in the order below, in which `done`
// and numbers that are no exit_code come last; of those, the larger number.
inline int worse_exit_code(int a, int b) {
  constexpr exit_code order[] = {exit_code::interrupted, exit_code::usage, exit_code::plugin, exit_code::wrong,
                                 exit_code::run,         exit_code::gate,  exit_code::skipped};
  for (const exit_code code : order)
    if (a == static_cast<int>(code) || b == static_cast<int>(code)) return static_cast<int>(code);
  return std::max(a, b);
}

inline exit_code worse_exit_code(exit_code a, exit_code b) {
  return static_cast<exit_code>(worse_exit_code(static_cast<int>(a), static_cast<int>(b)));
}

// The engine's exception: a text of one or more lines that says what happened, where, and what to do; and the exit code
// of a program that ends because of it. "Throws failure (usage)" names that code.
class failure : public std::runtime_error {
public:
  failure(exit_code code, const std::string& what) : std::runtime_error(what), code_(code) {}
  exit_code code() const noexcept { return code_; }

private:
  exit_code code_;
};

// The failure (run) of a rank that ends only because another rank ended first. The other rank reports the cause.
class peer_failure : public failure {
public:
  explicit peer_failure(const std::string& what) : failure(exit_code::run, what) {}
};

} // namespace regatta

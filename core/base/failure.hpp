// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace regatta {

// The program's exit codes. run: a run failed, or results could not be written; usage: the command line or the
// experiment is wrong; plugin: a plugin is missing or unusable; wrong: results are wrong, for example replicas differ;
// skipped: nothing could run or be tested here; interrupted: by a signal. worse_exit_code() (base/exit_code.hpp)
// decides between several.
enum class exit_code { done = 0, run = 1, usage = 2, plugin = 3, wrong = 4, skipped = 77, interrupted = 130 };

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

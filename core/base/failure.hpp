// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace regatta {

// The program's exit codes. Of several, the first in the order usage, plugin, wrong, run, gate applies.
enum class exit_code { done = 0, run = 1, usage = 2, plugin = 3, wrong = 4, gate = 5, skipped = 77, interrupted = 130 };

// The engine's exception: a text that says what happened, where, and what to do; and the program's exit code.
class failure : public std::runtime_error {
public:
  failure(exit_code code, const std::string& what) : std::runtime_error(what), code_(code) {}
  exit_code code() const noexcept { return code_; }

private:
  exit_code code_;
};

// A failure that only follows from the end of another rank, which is the cause.
class peer_failure : public failure {
public:
  explicit peer_failure(const std::string& what) : failure(exit_code::run, what) {}
};

} // namespace regatta

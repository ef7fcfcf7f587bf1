// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace regatta {

// SIGINT and SIGTERM between two runs, while it lives: remembered, so that the campaign ends in order. During a run
// launch() has them. One at a time. [main]
class interruption {
public:
  interruption();
  ~interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  bool requested() const noexcept;

private:
  struct sigaction before_int_, before_term_;
};

} // namespace regatta

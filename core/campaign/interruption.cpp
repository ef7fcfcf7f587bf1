// SPDX-License-Identifier: Apache-2.0
#include "campaign/interruption.hpp"

namespace regatta {
namespace {

volatile std::sig_atomic_t came = 0;

} // namespace

interruption::interruption() {
  came = 0;
  struct sigaction remember {};
  remember.sa_handler = [](int) { came = 1; };
  sigemptyset(&remember.sa_mask);
  sigaction(SIGINT, nullptr, &before_int_);
  sigaction(SIGTERM, nullptr, &before_term_);
  // A shell's background job, say, has SIGINT ignored, and means it.
  if (before_int_.sa_handler != SIG_IGN) sigaction(SIGINT, &remember, nullptr);
  if (before_term_.sa_handler != SIG_IGN) sigaction(SIGTERM, &remember, nullptr);
}

interruption::~interruption() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

bool interruption::requested() const noexcept {
  return came != 0;
}

} // namespace regatta

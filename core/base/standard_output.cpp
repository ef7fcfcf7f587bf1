// SPDX-License-Identifier: Apache-2.0
#include "base/standard_output.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace regatta {
namespace {

std::FILE* claimed = nullptr;

} // namespace

void claim_standard_output() {
  if (claimed) return;
  std::fflush(stdout);
  const int copy = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return;
  std::FILE* const stream = ::fdopen(copy, "w");
  if (!stream || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    stream ? std::fclose(stream) : ::close(copy);
    return;
  }
  claimed = stream; // the exit of the process flushes it, like all streams
}

std::FILE* document_stream() noexcept {
  return claimed ? claimed : stdout;
}

} // namespace regatta

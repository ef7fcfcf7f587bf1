// SPDX-License-Identifier: Apache-2.0
#include "cli/standard_output.hpp"

#include "base/console.hpp"
#include "base/failure.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace regatta {
namespace {

int lost_output = 0; // errno of the first failed write; 0: none
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

void print_output(std::string_view text) noexcept {
  std::FILE* const out = document_stream();
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size() && std::fflush(out) == 0;
  if (!written && !lost_output) lost_output = errno;
}

int finish_output(int code) {
  print_output("");
  if (!lost_output && !std::ferror(document_stream())) return code;
  print_error(fmt::format("regatta: standard output could not be written{}\n",
                          lost_output ? fmt::format(": {}", std::strerror(lost_output)) : ""));
  return code ? code : static_cast<int>(exit_code::run);
}

} // namespace regatta

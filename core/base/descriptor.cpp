// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace regatta {

void unique_fd::reset() noexcept {
  if (fd_ >= 0) ::close(release());
}

unique_fd above_standard(unique_fd fd) noexcept {
  if (fd.get() < 0 || fd.get() > STDERR_FILENO) return fd;
  return unique_fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

pipe_ends make_pipe() noexcept {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  pipe_ends out;
  out.read = above_standard(unique_fd(ends[0]));
  out.write = above_standard(unique_fd(ends[1]));
  return out;
}

bool write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

} // namespace regatta

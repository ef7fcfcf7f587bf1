// SPDX-License-Identifier: Apache-2.0
//
// File descriptors: ownership, pipes and complete writes.
#pragma once

#include <string_view>
#include <utility>

namespace regatta {

// Owns a file descriptor and closes it; -1: none. Assignment swaps: the old descriptor is closed with the other object.
class unique_fd {
public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_fd() { reset(); }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept;

private:
  int fd_ = -1;
};

struct pipe_ends {
  unique_fd read, write;
};

// [any] Both return descriptors above 2, so that they do not collide with a child's standard descriptors.
// above_standard() returns `fd` unchanged if it is above 2 or -1, else closes it and returns a close-on-exec duplicate;
// make_pipe() returns a new pipe, close-on-exec. A descriptor that the system refuses is -1 in the result, and errno
// has the reason.
unique_fd above_standard(unique_fd fd) noexcept;
pipe_ends make_pipe() noexcept;

// [any] Writes all of `bytes` to a descriptor that blocks. Returns false if it cannot; errno then has the reason.
bool write_all(int fd, std::string_view bytes) noexcept;

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regatta/plugin.hpp>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <unistd.h>

namespace tcp {

// Throws rg::error with the text "WHAT: TEXT OF THE ERROR CODE".
[[noreturn]] inline void fail_with_errno(rg_status status, const std::string& what, int code = errno) {
  throw rg::error(status, what + ": " + std::strerror(code));
}

// Owns a file descriptor, and closes it at the end; -1 means none. Move assignment swaps.
class descriptor {
public:
  explicit descriptor(int fd = -1) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  // Closes the descriptor now, if there is one.
  void reset() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

private:
  int fd_;
};

} // namespace tcp

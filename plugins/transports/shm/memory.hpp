// SPDX-License-Identifier: Apache-2.0
//
// File descriptors, and memory shared through them.
//
// A memfd has no name: it lives as long as a process has a descriptor or a mapping of it, so that nothing is left
// behind however its users die. It is sealed against shrinking, because access to a mapping beyond a shrunken file
// raises SIGBUS, and against growing. Pages are allocated when they are first touched.
#pragma once

#include <regatta/plugin.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace shm {

// Throws rg::error with this status and the text of errno: "shm: cannot map the heap: Cannot allocate memory".
[[noreturn]] inline void fail_with_errno(rg_status status, const std::string& what) {
  const int code = errno;
  throw rg::error(status, "shm: " + what + ": " + std::strerror(code));
}

// Owns a file descriptor, and closes it at the end; -1 means none. Assignment swaps.
class file_descriptor {
public:
  explicit file_descriptor(int fd = -1) noexcept : fd_(fd) {}
  file_descriptor(file_descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~file_descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

private:
  int fd_;
};

// A mapping of a whole memfd of `bytes` bytes, readable and writable, until the object ends; default: of nothing. `fd`
// may be closed after the constructor. Throws RG_E_OPERATION, in which `what` names the memory.
class mapping {
public:
  mapping() = default;
  mapping(const file_descriptor& fd, std::uint64_t bytes, const std::string& what) : bytes_(bytes) {
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
    if (p == MAP_FAILED)
      fail_with_errno(RG_E_OPERATION, "cannot map " + what + " of " + std::to_string(bytes) + " bytes");
    base_ = static_cast<std::byte*>(p);
  }
  mapping(mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  mapping& operator=(mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapping() {
    if (base_) ::munmap(base_, bytes_);
  }
  std::byte* base() const noexcept { return base_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  // Returns whether the `bytes` bytes from `address` on lie within the mapping.
  bool holds(const void* address, std::uint64_t bytes) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address), start = reinterpret_cast<std::uintptr_t>(base_);
    return at >= start && at - start <= bytes_ && bytes <= bytes_ - (at - start);
  }
  // Returns whether the `bytes` bytes from `offset` on lie within the mapping. Check values from a peer with it before
  // use.
  bool spans(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }

private:
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Makes a zeroed memfd of this size, which can neither grow nor shrink. `name` is shown in /proc only. Throws
// RG_E_OPERATION.
inline file_descriptor make_sealed_memory(const char* name, std::uint64_t bytes) {
  file_descriptor fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) fail_with_errno(RG_E_OPERATION, "cannot create shared memory");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    fail_with_errno(RG_E_OPERATION, "cannot make shared memory of " + std::to_string(bytes) + " bytes");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail_with_errno(RG_E_OPERATION, "cannot seal shared memory");
  return fd;
}

// Returns the size of a peer's memfd, in bytes. Throws RG_E_PEER if it is empty or not sealed: a peer could shrink an
// unsealed one and crash this process.
inline std::uint64_t sealed_size(const file_descriptor& fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  const off_t bytes = ::lseek(fd.get(), 0, SEEK_END);
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW) || bytes <= 0)
    throw rg::error(RG_E_PEER, "shm: expected a sealed memory descriptor from a peer, got another one");
  return static_cast<std::uint64_t>(bytes);
}

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

} // namespace shm

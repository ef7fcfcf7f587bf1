// SPDX-License-Identifier: Apache-2.0
#include "data/mapped_file.hpp"

#include "base/failure.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta {

mapped_file::mapped_file(const std::filesystem::path& path) : name_(path.string()) {
  const auto fail = [&](const char* what) {
    return failure(exit_code::usage, fmt::format("{}: cannot be {}: {}", name_, what, std::strerror(errno)));
  };
  const int fd = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not make us wait for a writer
  if (fd < 0) throw fail("opened");
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    throw failure(exit_code::usage, fmt::format("{}: is not a regular file", name_));
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const address = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0) : nullptr;
  const int error = errno;
  ::close(fd);
  errno = error;
  if (address == MAP_FAILED) throw fail("mapped into memory");
  bytes_ = {static_cast<const std::uint8_t*>(address), size};
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : name_(std::move(other.name_)), bytes_(std::exchange(other.bytes_, {})) {}

} // namespace regatta

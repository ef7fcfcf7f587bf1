// SPDX-License-Identifier: Apache-2.0
#include "files/write_atomically.hpp"

#include "base/descriptor.hpp"
#include "base/failure.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

constexpr const char* ending = ".tmp";
constexpr std::size_t digits = 16;

// Returns an unpredictable name, so that no other user can have placed a link there.
fs::path temporary_of(const fs::path& file) {
  std::random_device random;
  const std::uint64_t value = (static_cast<std::uint64_t>(random()) << 32) ^ random();
  fs::path temporary = file;
  return temporary += fmt::format(".{:0{}x}{}", value, digits, ending);
}

} // namespace

void write_atomically(const fs::path& file, const std::string& text) {
  const fs::path temporary = temporary_of(file);
  unique_fd out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  const bool made = out.get() >= 0;
  const auto give_up = [&](const char* step) {
    const std::string why = std::strerror(errno);
    std::error_code ignored;
    if (made) fs::remove(temporary, ignored);
    throw failure(exit_code::run, fmt::format("cannot write {}: {}: {}", file.string(), step, why));
  };
  if (!made) give_up("open");
  if (!write_all(out.get(), text)) give_up("write");
  if (::fsync(out.get()) != 0) give_up("fsync");
  if (::close(out.release()) != 0) give_up("close");
  if (std::rename(temporary.c_str(), file.c_str()) != 0) give_up("rename");
  sync_folder_of(file);
}

bool is_leftover(const std::string& name, const std::string& file) {
  return name.size() == file.size() + 1 + digits + std::strlen(ending) && name.starts_with(file + ".") &&
         name.ends_with(ending);
}

void sync_folder_of(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const unique_fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() >= 0) ::fsync(opened.get());
}

bool is_open_at(int fd, const fs::path& file) {
  struct stat mine {
  }, there{};
  return ::fstat(fd, &mine) == 0 && ::lstat(file.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
         mine.st_ino == there.st_ino;
}

} // namespace regatta

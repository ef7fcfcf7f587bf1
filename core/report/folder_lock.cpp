// SPDX-License-Identifier: Apache-2.0
#include "report/folder_lock.hpp"

#include "base/failure.hpp"
#include "files/write_atomically.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace regatta {
namespace {

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

} // namespace

folder_lock::folder_lock(const std::filesystem::path& folder) : file_(folder / "lock") {
  const auto give_up = [&] {
    const std::string why = std::strerror(errno);
    if (fd_ >= 0) ::close(fd_);
    throw failure(exit_code::run, fmt::format("{}: cannot lock this folder: {}", folder.string(), why));
  };
  for (;;) {
    fd_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd_ < 0) give_up();
    struct flock lock = whole_file(F_WRLCK);
    if (::fcntl(fd_, F_SETLK, &lock) != 0) {
      if (errno != EAGAIN && errno != EACCES) give_up();
      lock = whole_file(F_WRLCK);
      if (::fcntl(fd_, F_GETLK, &lock) != 0) give_up();
      ::close(fd_);
      if (lock.l_type == F_UNLCK) continue; // the holder released it in between
      throw failure(exit_code::usage,
                    fmt::format("{}: is being written by process {}; choose another folder with --out", folder.string(),
                                lock.l_pid));
    }
    if (holds()) return;
    ::close(fd_); // the previous holder removed this file: the folder has another one, or none
  }
}

folder_lock::~folder_lock() {
  if (holds()) ::unlink(file_.c_str());
  ::close(fd_);
}

bool folder_lock::holds() const {
  return is_open_at(fd_, file_);
}

} // namespace regatta

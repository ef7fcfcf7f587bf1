// SPDX-License-Identifier: Apache-2.0
#include "join/secret.hpp"

#include "base/descriptor.hpp"
#include "base/failure.hpp"
#include "base/text.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace regatta {
namespace {

constexpr std::size_t fewest_bytes = 32, most_bytes = 4096;

failure refused(const std::string& file, const std::string& why) {
  return {exit_code::usage, fmt::format("REGATTA_SECRET_FILE={}: {}", one_line(file), why)};
}

bool on_secret_mount(int fd) {
  struct statfs fs {};
  if (::fstatfs(fd, &fs) != 0) return false;
  return fs.f_type == TMPFS_MAGIC || (fs.f_flags & ST_RDONLY);
}

// Throws failure (usage) if the file is open to others.
void check_access(const std::string& file, int fd) {
  struct stat s {};
  if (::fstat(fd, &s) != 0) throw refused(file, fmt::format("cannot be examined: {}", std::strerror(errno)));
  if (!S_ISREG(s.st_mode)) throw refused(file, "expected a file, got a folder or a device");
  if (s.st_uid != ::geteuid() && s.st_uid != 0)
    throw refused(
        file, fmt::format("expected a file of this user ({}) or of root, got one of user {}", ::geteuid(), s.st_uid));
  const unsigned open = s.st_mode & (on_secret_mount(fd) ? 037u : 077u);
  if (open)
    throw refused(file, fmt::format("expected a file that only its owner can read, got mode {:04o}: chmod 600 FILE; in "
                                    "a pod, defaultMode: 0440 of the secret",
                                    s.st_mode & 07777u));
}

} // namespace

digest read_secret(const std::string& file) {
  const unique_fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)); // a pipe must not block
  if (fd.get() < 0) throw refused(file, fmt::format("cannot be read: {}", std::strerror(errno)));
  check_access(file, fd.get());
  std::array<std::uint8_t, most_bytes + 3> bytes{}; // room for "\r\n", and to notice more
  std::size_t count = 0;
  for (ssize_t n = 1; n > 0 && count < bytes.size();) {
    n = ::read(fd.get(), bytes.data() + count, bytes.size() - count);
    if (n < 0 && errno != EINTR) throw refused(file, fmt::format("cannot be read: {}", std::strerror(errno)));
    count += n > 0 ? static_cast<std::size_t>(n) : 0;
    if (n < 0) n = 1;
  }
  while (count > 0 && (bytes[count - 1] == '\n' || bytes[count - 1] == '\r')) --count;
  if (count == 0) throw refused(file, "the file is empty: openssl rand -hex 32 > FILE makes a secret");
  if (count < fewest_bytes || count > most_bytes)
    throw refused(file, fmt::format("expected {} to {} bytes, got {}: openssl rand -hex 32 > FILE makes a secret",
                                    fewest_bytes, most_bytes, count < fewest_bytes ? std::to_string(count) : "more"));
  return hmac_sha256(bytes_of("regatta launch secret"), {bytes_view(bytes.data(), count)});
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "base/replace_file.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace regatta {

bool replace_file(const std::filesystem::path& path, std::string_view bytes) {
  std::random_device random; // mkstemp would do, but for its mode: the file is for whoever the umask lets read
  std::string name;
  int fd = -1;
  for (int tries = 0; fd < 0 && tries < 100; ++tries) {
    name = fmt::format("{}.{:08x}{:08x}.tmp", path.string(), std::uint32_t{random()}, std::uint32_t{random()});
    fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) return false;
  }
  if (fd < 0) return false;
  bool good = true;
  while (good && !bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    good = n > 0 || (n < 0 && errno == EINTR);
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  good = ::close(fd) == 0 && good && std::rename(name.c_str(), path.c_str()) == 0;
  if (good) return true;
  const int why = errno;
  ::unlink(name.c_str());
  errno = why;
  return false;
}

} // namespace regatta

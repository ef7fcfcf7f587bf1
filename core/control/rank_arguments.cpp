// SPDX-License-Identifier: Apache-2.0
#include "control/rank_arguments.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "base/failure.hpp"

namespace regatta {

std::vector<std::string> to_command_line(const std::string& host, std::uint16_t port, std::uint32_t rank, int secret_fd,
                                         int status_fd) {
  // An IPv6 address contains colons and needs brackets.
  const auto format = host.find(':') == std::string::npos ? "{}:{}" : "[{}]:{}";
  return {"rank",
          "--connect",
          fmt::format(fmt::runtime(format), host, port),
          "--rank",
          std::to_string(rank),
          "--secret-fd",
          std::to_string(secret_fd),
          "--status-fd",
          std::to_string(status_fd)};
}

rank_arguments read_rank_arguments(const std::string& connect, std::uint32_t rank, int secret_fd) {
  rank_arguments out;
  out.rank = rank;
  const auto colon = connect.rfind(':');
  const char* end = connect.data() + connect.size();
  if (colon != std::string::npos) {
    const auto [at, error] = std::from_chars(connect.data() + colon + 1, end, out.port);
    if (error != std::errc() || at != end) out.port = 0;
  }
  if (out.port == 0) throw failure(exit_code::usage, fmt::format("--connect: expected HOST:PORT, got \"{}\"", connect));
  out.host = connect.substr(0, colon);
  if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']')
    out.host = out.host.substr(1, out.host.size() - 2);

  out.secret.resize(secret_bytes);
  std::size_t have = 0;
  while (have < secret_bytes) {
    const auto got = ::read(secret_fd, out.secret.data() + have, secret_bytes - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw failure(exit_code::usage, fmt::format("--secret-fd {}: cannot read the run's secret there ({}); ranks are "
                                                  "started by `regatta run`, not by hand",
                                                  secret_fd, got < 0 ? std::strerror(errno) : "end of file"));
    have += static_cast<std::size_t>(got);
  }
  ::close(secret_fd);
  return out;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The command line by which a rank finds its coordinator: `rank --connect HOST:PORT --rank N --secret-fd FD --status-fd
// FD`. The secret comes through a pipe, because other users can read a command line and an environment. The other
// descriptor is the rank's status page (control/status_page.hpp).
#pragma once

#include <string>
#include <vector>

#include "control/blob.hpp"

namespace regatta {

inline constexpr std::size_t secret_bytes = 32;

struct rank_arguments {
  std::string host; // an address without brackets
  std::uint16_t port = 0;
  std::uint32_t rank = 0;
  blob secret;
};

// Returns the rank's arguments after the program's name, the verb first.
std::vector<std::string> to_command_line(const std::string& host, std::uint16_t port, std::uint32_t rank, int secret_fd,
                                         int status_fd);

// Returns the arguments that are the values of --connect, --rank and --secret-fd. Reads the secret from its descriptor
// and closes it. The caller passes the value of --status-fd to status_page. Throws failure (usage) if `connect` is not
// HOST:PORT or the descriptor holds no secret.
rank_arguments read_rank_arguments(const std::string& connect, std::uint32_t rank, int secret_fd);

} // namespace regatta

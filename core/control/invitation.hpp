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

struct invitation {
  std::string host;
  std::uint16_t port = 0;
  std::uint32_t rank = 0;
  blob secret;
};

// Returns the rank's arguments after the program's name, the verb first.
std::vector<std::string> invitation_arguments(const std::string& host, std::uint16_t port, std::uint32_t rank,
                                              int secret_fd, int status_fd);

// Parses these arguments, without the verb. Reads the secret and closes its descriptor. Throws failure (usage).
invitation read_invitation(const std::string& connect, std::uint32_t rank, int secret_fd);

} // namespace regatta

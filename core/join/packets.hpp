// SPDX-License-Identifier: Apache-2.0
//
// How an agent and the launched processes of its host find each other and talk: packets of CBOR over Unix sockets of
// type SOCK_SEQPACKET with abstract names, which leave no file behind and exist once in each network namespace. Both
// ends accept only processes of the same user (SO_PEERCRED).
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "base/descriptor.hpp"

namespace regatta {

// Returns a socket that listens under the abstract name, or -1 if another process listens there. Throws failure (run)
// for other errors.
unique_fd listen_at(const std::string& name);
// Returns a connection to the process that listens under the name, or -1 if none of this user does.
unique_fd connect_at(const std::string& name);
// Waits for a connection and accepts it; -1 if that fails (on a non-blocking socket: if there is none), or if it
// belongs to another user. Stores the process at its other end in `peer`; -1: none.
unique_fd accept_at(int listener, pid_t& peer);

// Sends a packet of at most 64 KiB, with duplicates of the descriptors (at most 4). Throws failure (run) if the other
// end is gone.
void put(int socket, const nlohmann::json& what, std::span<const int> descriptors = {});
// Waits for a packet; std::nullopt if the other end is gone or the packet is no object. Appends descriptors that came
// with it to `descriptors`.
std::optional<nlohmann::json> get(int socket, std::vector<unique_fd>* descriptors = nullptr);

// Waits until one of the descriptors is readable or its other end is gone, -1 entries excepted. Returns the first such
// index; std::nullopt after `until`.
std::optional<std::size_t> wait_readable(std::span<const int> descriptors, std::chrono::steady_clock::time_point until);

} // namespace regatta

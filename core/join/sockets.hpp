// SPDX-License-Identifier: Apache-2.0
//
// TCP sockets between hosts, by which a launch meets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/descriptor.hpp"
#include "control/blob.hpp"

namespace regatta {

// Returns a socket that listens on all addresses of this host, at the first free one of the ports `port` to
// `port + tries - 1` (`port` 0: any; `tries` 0 is as 1). Stores the port in `used`. Throws failure (run) if none is
// free.
unique_fd listen_on_all(std::uint16_t port, std::uint16_t tries, std::uint16_t& used);

// Resolves `host` (a name or a numeric address) and connects to the first of its addresses that answers, as process
// `number` of the launch: the connection has proven the secret. Returns -1, and stores the reason in `why`, if there is
// no such connection within `limit`. Throws proof_refused (control/handshake.hpp) if the other side ends the connection
// after the proof, as one with another secret does.
unique_fd connect_to(const std::string& host, std::uint16_t port, const blob& secret, std::uint32_t number,
                     std::chrono::milliseconds limit, std::string& why);

// Makes the kernel end the connection if the other host acknowledges nothing for `limit`, even while nothing is sent
// (then rounded up to whole seconds).
void notice_lost_host(const unique_fd& socket, std::chrono::milliseconds limit = std::chrono::seconds(5));

// Returns for how long nothing has come over a TCP connection from the other host, neither data nor acknowledgements,
// which its kernel sends even while the process there is stopped; 0 if this kernel does not say it.
std::chrono::milliseconds silence_of(const unique_fd& socket);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The stream of a tcp lane after the handshake: the peer sends anything, in pieces cut anywhere.
#include "connection.hpp"
#include "input.hpp"

#include <regatta/plugin.hpp>

#include <sys/socket.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  regatta::fuzz::input in(data, size);
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  tcp::descriptor peer(ends[1]);
  static tcp::common shared{.chunk = 4096, .finished = {}, .order = {}, .released = {}};
  // Exactly as long as the receives: a byte too many is a report of AddressSanitizer.
  std::vector<std::vector<std::byte>> buffers;
  try {
    tcp::connection c(shared, {1, 0, 0, tcp::descriptor(ends[0])});
    try {
      for (std::uint64_t cookie = 0; !in.empty() && cookie < 64; ++cookie) {
        const auto action = in.number<std::uint8_t>();
        if (action < 64) { // a whole message, with its header
          const std::uint64_t payload = in.number<std::uint16_t>();
          const tcp::header head = tcp::make_header(payload);
          ::send(peer.get(), head.data(), tcp::header_bytes(payload), MSG_DONTWAIT | MSG_NOSIGNAL);
        } else if (action < 160) {
          const auto bytes = in.take(action);
          ::send(peer.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        } else if (action < 224) {
          const bool adds = action % 2 != 0;
          buffers.emplace_back(adds ? in.number<std::uint16_t>() / 4 * 4 : in.number<std::uint16_t>());
          c.post_receive(buffers.back().data(), buffers.back().size(), adds, cookie);
        } else if (action == 255) {
          ::shutdown(peer.get(), SHUT_WR);
        }
        c.became(true, true, action == 255);
        for (int i = 0; i < 100 && c.progress(); ++i) {
        }
      }
    } catch (const rg::error&) { // the peer is lost
    }
    c.abandon(RG_E_CANCELLED);
  } catch (const rg::error&) {
  }
  while (!shared.finished.empty()) shared.finished.pop();
  while (!shared.released.empty()) shared.released.pop();
  return 0;
}

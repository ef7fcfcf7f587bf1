// SPDX-License-Identifier: Apache-2.0
//
// Feeds a shm transport with the writes of a hostile peer: false records, and bytes anywhere in its rings.
#include "../plugins/transports/shm/lying_peer.hpp"
#include "input.hpp"

#include <vector>

using namespace shm;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  regatta::fuzz::input in(data, size);
  lying_peer p;
  // The peer's ring begins where its first record would.
  std::byte* const ring = reinterpret_cast<std::byte*>(p.out[0].reserve(0)) - sizeof(ring_state);
  std::vector<std::vector<float>> buffers;
  const std::vector<std::byte> message(3000);
  try {
    for (std::uint64_t cookie = 0; !in.empty() && cookie < 64; ++cookie) {
      const auto action = in.number<std::uint8_t>();
      switch (action % 6) {
      case 0: { // a receive
        buffers.emplace_back(in.number<std::uint16_t>() % 4096);
        p.rank().receive(lying_peer::transfer(buffers.back().data(), cookie, action >= 128), 4 * buffers.back().size());
        break;
      }
      case 1: { // a record
        const auto kind = in.number<std::uint16_t>();
        const auto total = in.number<std::uint64_t>(), offset = in.number<std::uint64_t>();
        p.say(kind % 5, total, offset, in.number<std::uint32_t>());
        break;
      }
      case 2: { // one that could be true
        const auto bytes = in.number<std::uint16_t>();
        p.say(static_cast<std::uint16_t>(1 + action / 64 % 2), bytes, in.number<std::uint16_t>(), bytes);
        break;
      }
      case 3: { // bytes anywhere, the ring's state included
        const std::size_t at = in.number<std::uint16_t>() % (sizeof(ring_state) + lying_peer::ring_bytes - 64);
        const auto bytes = in.take(action / 4);
        if (!bytes.empty()) std::memcpy(ring + at, bytes.data(), bytes.size());
        break;
      }
      case 4: p.rank().send(lying_peer::transfer(message.data(), cookie), in.number<std::uint16_t>() % 3000); break;
      default: { // its answer to a message
        if (record* r = p.in.peek()) {
          const auto bytes = in.number<std::uint16_t>();
          if (p.in.is_sound(bytes)) p.in.pop(r, bytes, in.number<std::int8_t>(), action >= 128);
        }
      }
      }
      for (int i = 0; i < 8 && p.rank().progress(0); ++i) {
      }
    }
  } catch (const rg::error&) { // the peer is lost
  }
  for (rg_status s = 0; (s = p.completed()) != RG_AGAIN;)
    if (s != RG_OK && s != RG_E_PEER && s != RG_E_OPERATION) __builtin_trap();
  return 0;
}

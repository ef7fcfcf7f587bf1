// SPDX-License-Identifier: Apache-2.0
//
// What goes over a socket, after the handshake of rendezvous.hpp: messages one after the other, each
//
//     8 bytes    little-endian: bits 0 to 47 the payload's length in bytes, bits 48 to 63 a mark
//     n bytes    payload
//
// The mark tells a stream that got out of step from a message.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tcp {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian, and so is memory");

inline constexpr std::size_t header_bytes = 8;
inline constexpr std::uint64_t longest_message = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint64_t header_mark = std::uint64_t{0x5247} << 48;

inline std::uint64_t make_header(std::uint64_t payload) {
  return header_mark | payload;
}

// The payload's length; false where the bytes are no header.
inline bool read_header(const std::byte* bytes, std::uint64_t& payload) {
  std::uint64_t header;
  std::memcpy(&header, bytes, sizeof header);
  payload = header & longest_message;
  return (header & ~longest_message) == header_mark;
}

} // namespace tcp

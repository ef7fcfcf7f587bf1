// SPDX-License-Identifier: Apache-2.0
//
// The format of a stream after the handshake of rendezvous.hpp: messages one after the other, each
//
//     8 bytes    little-endian: bits 0 to 47 the payload's length in bytes, bits 48 to 63 a mark
//     56 bytes   zeros, only before a long payload
//     n bytes    payload
//
// The mark detects a stream that is out of step. The zeros align the payload in the kernel's pages as it mostly is in
// memory, to a multiple of 64: AMD's processors (Zen 3 and 4) run REP MOVSB, with which the kernel copies, at less than
// half the speed if source and destination differ by 1 to 63 bytes modulo a page. With a header of 8 bytes every long
// message was affected: an all-reduce of 1 MiB took 450 us; with 64 bytes it takes 190 us.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tcp {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian, and so is memory");

inline constexpr std::size_t short_header = 8, long_header = 64; // bytes
inline constexpr std::uint64_t long_payload = 16 << 10;          // bytes; payloads of at least this size are long
inline constexpr std::uint64_t longest_message = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint64_t header_mark = std::uint64_t{0x5247} << 48;

// Returns the bytes of the header before a payload of this many bytes, at most longest_message.
constexpr std::size_t header_bytes(std::uint64_t payload) {
  return payload < long_payload ? short_header : long_header;
}

using header = std::array<std::uint64_t, long_header / sizeof(std::uint64_t)>;

// Returns a header for a payload of this many bytes, at most longest_message. Send its first header_bytes(payload)
// bytes.
inline header make_header(std::uint64_t payload) {
  return {header_mark | payload};
}

// Sets `payload` to the payload's length in bytes, from the first 8 bytes of a header. Returns false if the mark is
// wrong, so that `payload` is meaningless.
inline bool read_header(const std::byte* bytes, std::uint64_t& payload) {
  std::uint64_t first;
  std::memcpy(&first, bytes, sizeof first);
  payload = first & longest_message;
  return (first & ~longest_message) == header_mark;
}

} // namespace tcp

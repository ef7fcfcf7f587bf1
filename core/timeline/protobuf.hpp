// SPDX-License-Identifier: Apache-2.0
//
// The wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding), as far as traces use it.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/failure.hpp"

namespace regatta::protobuf {

enum class wire_type : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// A message that is being written.
class message {
public:
  void varint(std::uint32_t field, std::uint64_t value) {
    key(field, wire_type::varint);
    number(value);
  }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    key(field, wire_type::fixed64);
    for (int i = 0; i < 8; ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
  }
  // Writes a double.
  void real(std::uint32_t field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void bytes(std::uint32_t field, std::string_view value) {
    key(field, wire_type::bytes);
    number(value.size());
    out_ += value;
  }
  void add(std::uint32_t field, const message& value) { bytes(field, value.out_); }
  const std::string& data() const { return out_; }
  void clear() { out_.clear(); }

private:
  void key(std::uint32_t field, wire_type type) { number(field << 3 | static_cast<std::uint32_t>(type)); }
  void number(std::uint64_t value) {
    for (; value >= 128; value >>= 7) out_.push_back(static_cast<char>(value | 128));
    out_.push_back(static_cast<char>(value));
  }

  std::string out_;
};

// Reads the fields of a message one after the other.
class reader {
public:
  explicit reader(std::string_view message) : rest_(message) {}

  // Goes to the next field; false: there is none. Throws failure (usage) if the bytes are no message.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    field_ = static_cast<std::uint32_t>(key >> 3);
    bytes_ = {};
    value_ = 0;
    switch (static_cast<wire_type>(key & 7)) {
    case wire_type::varint: value_ = varint(); break;
    case wire_type::fixed64: value_ = fixed(8); break;
    case wire_type::fixed32: value_ = fixed(4); break;
    case wire_type::bytes: bytes_ = take(varint()); break;
    default: damaged();
    }
    return true;
  }
  std::uint32_t field() const { return field_; }
  std::uint64_t value() const { return value_; }    // of a number
  std::string_view bytes() const { return bytes_; } // of a text or a message

private:
  [[noreturn]] static void damaged() { throw failure(exit_code::usage, "it is no trace: a message is cut short"); }
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) damaged();
    const std::string_view some = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return some;
  }
  std::uint64_t fixed(std::size_t count) {
    std::uint64_t value = 0;
    int shift = 0;
    for (const char c : take(count)) {
      value |= std::uint64_t{static_cast<std::uint8_t>(c)} << shift;
      shift += 8;
    }
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto c = static_cast<std::uint8_t>(take(1)[0]);
      value |= std::uint64_t{c & 127U} << shift;
      if (c < 128) return value;
    }
    damaged();
  }

  std::string_view rest_, bytes_;
  std::uint32_t field_ = 0;
  std::uint64_t value_ = 0;
};

} // namespace regatta::protobuf

// SPDX-License-Identifier: Apache-2.0
//
// The fuzzer's bytes, taken piece by piece; zeros and empty pieces once they are used up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace regatta::fuzz {

class input {
public:
  input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }
  template <class T> T number() {
    T value{};
    const auto bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::span<const std::uint8_t> take(std::size_t most) {
    const auto piece = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(piece.size());
    return piece;
  }
  std::string text() {
    const auto all = take(rest_.size());
    return {all.begin(), all.end()};
  }

private:
  std::span<const std::uint8_t> rest_;
};

} // namespace regatta::fuzz

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace regatta {

// SHA-256 of bytes that are added in pieces.
class sha256 {
public:
  // This, add() and hex() throw std::runtime_error if OpenSSL cannot compute it.
  sha256();
  ~sha256();
  sha256(const sha256&) = delete;
  sha256& operator=(const sha256&) = delete;
  void add(std::string_view bytes);
  std::string hex(); // 64 digits, lower case; must be the last call

private:
  void* context_;
};

std::string sha256_of_text(std::string_view text);

} // namespace regatta

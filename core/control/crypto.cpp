// SPDX-License-Identifier: Apache-2.0
#include "control/crypto.hpp"

#include <cstring>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/failure.hpp"

namespace regatta {

blob random_bytes(std::size_t count) {
  blob out(count);
  if (RAND_bytes(out.data(), static_cast<int>(count)) != 1)
    throw failure(exit_code::run, "OpenSSL has no random bytes for the secret of the run");
  return out;
}

digest hmac_sha256(bytes_view key, std::initializer_list<bytes_view> parts) {
  blob text;
  for (const auto part : parts) text.insert(text.end(), part.begin(), part.end());
  digest out{};
  unsigned length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(), text.size(), out.data(), &length) ==
          nullptr ||
      length != out.size())
    throw failure(exit_code::run, "OpenSSL cannot compute HMAC-SHA-256");
  return out;
}

bool equal_in_constant_time(bytes_view a, bytes_view b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bytes_view bytes_of(const char* text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text), std::strlen(text)};
}

} // namespace regatta

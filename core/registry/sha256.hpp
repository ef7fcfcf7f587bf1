// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st; // EVP_MD_CTX of OpenSSL

namespace regatta {

// SHA-256 of the bytes of all calls of add(), in their order. One thread at a time.
class sha256 {
public:
  // The constructor, add() and hex() throw std::runtime_error (no failure) if OpenSSL cannot compute the hash.
  sha256();
  void add(std::string_view bytes);
  std::string hex(); // returns 64 hexadecimal digits, lower case; add() and hex() must not be called afterwards

private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

} // namespace regatta

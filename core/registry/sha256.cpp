// SPDX-License-Identifier: Apache-2.0
#include "registry/sha256.hpp"

#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace regatta {
namespace {

EVP_MD_CTX* context_in(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

void must(int result) {
  if (result != 1) throw std::runtime_error("SHA-256 cannot be computed");
}

} // namespace

sha256::sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(context_in(context_), EVP_sha256(), nullptr) != 1) {
    EVP_MD_CTX_free(context_in(context_));
    must(0);
  }
}

sha256::~sha256() {
  EVP_MD_CTX_free(context_in(context_));
}

void sha256::add(std::string_view bytes) {
  must(EVP_DigestUpdate(context_in(context_), bytes.data(), bytes.size()));
}

std::string sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned length = 0;
  must(EVP_DigestFinal_ex(context_in(context_), sum.data(), &length));
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", sum[i]);
  return text;
}

std::string sha256_of_text(std::string_view text) {
  sha256 sum;
  sum.add(text);
  return sum.hex();
}

} // namespace regatta

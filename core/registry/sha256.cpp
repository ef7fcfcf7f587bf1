// SPDX-License-Identifier: Apache-2.0
#include "registry/sha256.hpp"

#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace regatta {
namespace {

void must(int result) {
  if (result != 1) throw std::runtime_error("SHA-256 cannot be computed");
}

} // namespace

sha256::sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  must(context_ ? EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) : 0);
}

void sha256::add(std::string_view bytes) {
  must(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned length = 0;
  must(EVP_DigestFinal_ex(context_.get(), sum.data(), &length));
  std::string text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", sum[i]);
  return text;
}

} // namespace regatta

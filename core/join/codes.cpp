// SPDX-License-Identifier: Apache-2.0
#include "join/codes.hpp"

#include <cctype>
#include <string_view>

#include "base/failure.hpp"
#include "control/crypto.hpp"

namespace regatta {
namespace {

// Crockford's base 32: without I, L, O and U, which are mistaken for others.
constexpr std::string_view digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t length = 16, group = 4;

} // namespace

std::string make_code() {
  std::string code;
  for (const std::uint8_t byte : random_bytes(length)) { // 256 is a multiple of 32: every digit is equally likely
    if (!code.empty() && code.size() % (group + 1) == group) code += '-';
    code += digits[byte % digits.size()];
  }
  return code;
}

blob secret_of_code(const std::string& typed) {
  blob letters;
  for (const char c : typed) {
    if (c == ' ' || c == '-' || c == '\t' || c == '\r') continue;
    const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (digits.find(upper) == std::string_view::npos)
      throw failure(exit_code::usage,
                    "the code has letters and digits like K7QF-2MXD-9RTC-H4WN, without I, L, O and U");
    letters.push_back(static_cast<std::uint8_t>(upper));
  }
  if (letters.size() != length)
    throw failure(exit_code::usage, "expected a code of 16 letters and digits, as the first computer shows it");
  const digest d = hmac_sha256(letters, {bytes_of("regatta one-time code")});
  return {d.begin(), d.end()};
}

blob under_code(const blob& secret_of_code, const blob& nonce, const blob& launch_secret) {
  const digest pad = hmac_sha256(secret_of_code, {bytes_of("regatta secret of the launch"), nonce});
  blob out = launch_secret;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] ^= pad.at(i);
  return out;
}

} // namespace regatta

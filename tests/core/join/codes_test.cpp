// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/failure.hpp"
#include "control/crypto.hpp"
#include "join/codes.hpp"

using namespace regatta;

TEST_CASE("codes are long, differ, and are read as people type them") {
  std::set<std::string> all;
  for (int i = 0; i < 1000; ++i) all.insert(make_code());
  CHECK(all.size() == 1000);
  const std::string code = *all.begin();
  CHECK(code.size() == 19);
  CHECK(std::count(code.begin(), code.end(), '-') == 3);
  std::string typed = code;
  std::erase(typed, '-');
  std::transform(typed.begin(), typed.end(), typed.begin(), [](unsigned char c) { return std::tolower(c); });
  CHECK(secret_of_code(typed) == secret_of_code(code));
  CHECK(secret_of_code(" " + code + " ") == secret_of_code(code));
  CHECK(secret_of_code(code) != secret_of_code(*all.rbegin()));
}

TEST_CASE("a text that cannot be a code is refused") {
  for (const char* wrong :
       {"", "K7QF-2MXD-9RTC-H4W", "K7QF-2MXD-9RTC-H4WNA", "K7QF-2MXD-9RTC-H4WI", "K7QF_2MXD-9RTC-H4WN"})
    CHECK_THROWS_AS(secret_of_code(wrong), failure);
}

TEST_CASE("only the code decrypts the launch's secret") {
  const blob secret = random_bytes(32), nonce = random_bytes(32);
  const blob mine = secret_of_code(make_code()), other = secret_of_code(make_code());
  const blob hidden = under_code(mine, nonce, secret);
  CHECK(hidden != secret);
  CHECK(under_code(mine, nonce, hidden) == secret);
  CHECK(under_code(other, nonce, hidden) != secret);
  CHECK(under_code(mine, random_bytes(32), hidden) != secret);
}

// SPDX-License-Identifier: Apache-2.0
//
// Interfaces and subnets as cluster.interface takes them.
#include <doctest/doctest.h>

#include "base/failure.hpp"
#include "network/interfaces.hpp"

#include <string>
#include <vector>

using namespace regatta;

namespace {

std::string refusal(const std::string& names) {
  try {
    (void)addresses_of_interfaces(names);
  } catch (const failure& e) {
    return e.what();
  }
  return "";
}

} // namespace

TEST_CASE("an interface, a subnet, an address and auto have an address each") {
  const std::vector<std::string> loopback{"127.0.0.1"};
  for (const char* name : {"auto", "lo", "127.0.0.0/8", "127.0.0.1/32", "127.0.0.1"})
    CHECK(addresses_of_interfaces(name) == loopback);
  CHECK(addresses_of_interfaces("lo, 10.9.8.7,::1") == std::vector<std::string>{"127.0.0.1", "10.9.8.7", "::1"});
  CHECK(address_of_interface("::1/128") == "::1");
}

TEST_CASE("a name that no address has is refused with those that there are") {
  for (const char* subnet : {"198.51.100.0/24", "127.0.0.0/33", "127.0.0.0/", "/8", "2001:db8::/32", "nonsense/8"}) {
    const std::string text = refusal(subnet);
    CHECK(text.find("no address of this machine lies in \"" + std::string(subnet) + "\"; there are") == 0);
    CHECK(text.find("lo (127.0.0.1") != std::string::npos);
  }
  CHECK(refusal("no_such0").find("there is no network interface \"no_such0\"") == 0);
  CHECK(refusal("lo,").find("there is no network interface \"\"") == 0);
  CHECK(refusal("lo,127.0.0.0/8") == "127.0.0.1 occurs twice in \"lo,127.0.0.0/8\"");
}

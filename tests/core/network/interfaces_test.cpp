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

TEST_CASE("the interface of an address has a subnet, an MTU, and a speed only where the kernel says one") {
  const address_interface loopback = interface_of("127.0.0.1");
  CHECK(loopback.name == "lo");
  CHECK(loopback.subnet == "127.0.0.0/8");
  CHECK(loopback.mtu >= 1280); // the least that IPv6 needs
  CHECK(!loopback.bits_per_second);
  for (const char* none : {"198.51.100.7", "nonsense", ""}) CHECK(interface_of(none).name.empty());
}

TEST_CASE("links have an entry for each rail, with the key that chose it") {
  nlohmann::json host;
  add_links(host, "lo,198.51.100.7", links_of_interfaces("lo,198.51.100.7"));
  add_links(host, "auto", links_of_interfaces("auto"));
  const nlohmann::json& links = host.at("links");
  REQUIRE(links.size() == 3);
  CHECK(links[0].at("key") == "lo,198.51.100.7");
  CHECK(links[0].at("address") == "127.0.0.1");
  CHECK(links[0].at("name") == "lo");
  CHECK(links[0].at("mtu") == interface_of("127.0.0.1").mtu);
  CHECK(links[0].at("bits_per_second").is_null());
  CHECK(links[1].at("address") == "198.51.100.7");
  for (const char* unknown : {"name", "mtu", "bits_per_second"}) CHECK(links[1].at(unknown).is_null());
  CHECK(links[2].at("key") == "auto");
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Returns the numeric address of a network interface of this machine, such as "eth0": its first IPv4 address, else its
// first IPv6 address that is not link-local. `name` may also be a subnet, such as "10.1.0.0/16": then the first address
// within it. Throws failure (usage), which lists the interfaces, if there is no such interface or address; failure
// (run) if the interfaces cannot be listed.
std::string address_of_interface(const std::string& name);

// Returns the numeric addresses of `names`, separated by commas: of an interface or subnet address_of_interface(),
// while a numeric address stands for itself, and "auto" for the loopback address. Throws as that function does; failure
// (usage) also if an address occurs twice.
std::vector<std::string> addresses_of_interfaces(const std::string& names);

// Returns the numeric addresses by which other machines may reach this one: all but loopback and link-local ones, IPv4
// first; empty if they cannot be listed.
std::vector<std::string> global_addresses();

// The interface of an address of this host.
struct address_interface {
  std::string name;   // "" if no interface has the address
  std::string subnet; // "10.77.0.0/24"
  std::uint32_t mtu = 0;
  std::optional<std::uint64_t> bits_per_second; // as the kernel says; nullopt: it does not, as for lo and virtual ones
};
address_interface interface_of(const std::string& address);

// Returns for each of addresses_of_interfaces(names), in that order, an object with "address", "name" of its interface,
// "bits_per_second" and "mtu"; null: unknown. Throws as that function does.
nlohmann::json links_of_interfaces(const std::string& names);

// Adds links_of_interfaces(names), with "key" as `names`, to the member "links" of a host's description. `names` is a
// value of cluster.interface, "auto" included.
void add_links(nlohmann::json& host, const std::string& names, nlohmann::json links);

} // namespace regatta

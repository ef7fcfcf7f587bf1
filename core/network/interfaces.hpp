// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

// Returns the numeric address of a network interface of this machine, such as "eth0": its first IPv4 address, else its
// first IPv6 address that is not link-local. `name` may also be a subnet, such as "10.1.0.0/16": then the first address
// within it. Throws failure (usage), which lists the interfaces, if there is no such interface or address; failure (run)
// if the interfaces cannot be listed.
std::string address_of_interface(const std::string& name);

// Returns the numeric addresses of `names`, separated by commas: of an interface or subnet address_of_interface(), while
// a numeric address stands for itself, and "auto" for the loopback address. Throws as that function does; failure
// (usage) also if an address occurs twice.
std::vector<std::string> addresses_of_interfaces(const std::string& names);

// Returns the numeric addresses by which other machines may reach this one: all but loopback and link-local ones, IPv4
// first; empty if they cannot be listed.
std::vector<std::string> global_addresses();

} // namespace regatta

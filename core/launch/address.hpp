// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

// Returns the numeric address of a network interface of this machine, such as "eth0": its first IPv4 address, else its
// first IPv6 address that is not link-local. Throws failure (usage), which lists the interfaces, if there is no such
// interface or it has no such address; failure (run) if the interfaces cannot be listed.
std::string address_of_interface(const std::string& name);

// Returns the numeric addresses of `names`, separated by commas: of an interface address_of_interface(), while a
// numeric address stands for itself. Throws as that function does; failure (usage) also if an address occurs twice.
std::vector<std::string> addresses_of_interfaces(const std::string& names);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace regatta {

// Returns the numeric address of a network interface: its first IPv4 address, else its first IPv6 address that is not
// link-local. Throws failure (usage) that lists the interfaces of this machine.
std::string address_of_interface(const std::string& name);

} // namespace regatta

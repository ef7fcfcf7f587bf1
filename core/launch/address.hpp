// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace regatta {

// The numeric address of a network interface: its first IPv4 address, else its first IPv6 address that is not
// link-local. Throws failure (usage) with the interfaces there are.
std::string address_of_interface(const std::string& name);

} // namespace regatta

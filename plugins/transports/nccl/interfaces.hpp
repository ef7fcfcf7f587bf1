// SPDX-License-Identifier: Apache-2.0
//
// The network interfaces that NCCL uses.
#pragma once

#include <regatta/abi.h>

namespace nccl {

// Makes NCCL use the interfaces with this rank's addresses (cluster.interface) for connecting its ranks, and for
// messages over sockets: sets NCCL_SOCKET_IFNAME in the environment, with exact names. NCCL would take the first
// interface that is neither loopback nor docker's, which may be another on each host. Does nothing if the variable is
// set, or if no interface has one of the addresses. NCCL reads the variable once per process, when the first id or
// communicator is made: call this before. [main]
void choose_interfaces(const rg_world& world);

} // namespace nccl

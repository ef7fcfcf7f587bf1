// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulate/machine_file.hpp"

#include <string>
#include <vector>

namespace regatta {

// Messages between one rank on each of two hosts: "send" of a stored result of `regatta comm`.
struct measured_sends {
  std::string transport;
  double ns = 0, ns_per_byte = 0, residual = 0; // the time of a message, and how good that line fits
  message_work work;
};

// [any] Returns the messages of the result `given`, of which small ones and large ones count. Throws failure: (usage) if
// it is no such result, has another number of hosts, several transports, or one that is not in `transports`, or no
// small or no large ones; (run) if the fit is bad.
measured_sends read_measured_sends(const std::string& given, const std::vector<std::string>& transports);

// [any] Returns the link between the hosts: the rate at which large messages go, and the latency that small ones have
// beyond what they cost on one host, `costs` of the same transport, without `in_training`.
machine_file::network network_of(const measured_sends& sends, const message_costs& costs);

} // namespace regatta

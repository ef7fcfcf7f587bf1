// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

struct preflight_options {
  std::string interface = "auto", format = "console", timeout = "auto", log = "warning"; // as in comm_options
  std::vector<std::string> plugin_path;
  std::string command; // as typed
};

// Runs `regatta preflight`: measures the hosts of a launch, or this host, and prints which are suspects. Returns 5 (gate)
// if there are any, else 0. Throws failure if options are wrong, the transport tcp is missing, or hosts cannot reach each
// other. [main]
int preflight_verb(const preflight_options& options);

} // namespace regatta

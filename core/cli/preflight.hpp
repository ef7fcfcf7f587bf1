// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

struct preflight_options {
  // As in comm_options; `format` may not be csv.
  std::string interface = "auto", format = "console", timeout = "auto", log = "warning";
  std::vector<std::string> plugin_path;
  std::string command; // as typed
};

// Runs `regatta preflight`: measures the hosts of a launch, or this host, and prints which are suspects. Returns 5
// (gate) if there are any, else 0. Throws failure if options are wrong, the transport tcp is missing, hosts cannot
// reach each other, or the measurement fails or is interrupted. Under a launcher it returns only in the
// coordinator (join/start.hpp). [main]
int preflight_verb(const preflight_options& options);

} // namespace regatta

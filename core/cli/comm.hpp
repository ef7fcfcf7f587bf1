// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

struct comm_options {
  std::vector<std::string> transports = {"shm", "tcp"}, ops = {"allreduce", "send", "push_pull"}, algorithms, set;
  std::vector<unsigned> ranks = {2};
  std::string least = "8B", most = "64MiB", spin = "0s", format = "console", interface = "lo", timeout = "auto",
              log = "warning";
  unsigned factor = 4;
  double seconds = 0.2;
  bool no_pin = false;
  std::vector<std::string> plugin_path;
  std::string command; // as typed
};

// Runs `regatta comm`. Returns the exit code; throws failure. [main]
int comm_verb(const comm_options& options);

} // namespace regatta

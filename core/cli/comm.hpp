// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct comm_options {
  // Empty `algorithms`: all that an operation has. `set`: "ID.NAME=VALUE" for parameters of a transport.
  std::vector<std::string> transports = {"shm", "tcp"}, ops = {"allreduce", "send", "push_pull"}, algorithms, set;
  std::vector<unsigned> ranks = {2}; // each number of ranks is one run
  // `least` and `most`: the smallest and largest message. `spin`: how long a waiting rank polls before it sleeps.
  // `timeout`: as measure.timeout. `log`: the level up to which messages of ranks are shown.
  std::string least = "8B", most = "64MiB", spin = "0s", format = "console", interface = "auto", timeout = "auto",
              log = "warning";
  unsigned factor = 4;                   // at least 2; ratio of a size to the one before, of the last one at most this
  double seconds = 0.2;                  // to measure each size, about (comm::plan)
  bool no_pin = false;                   // ranks may run on any CPU
  bool allow_different_binaries = false; // on a launcher's hosts: warn instead of refusing
  // "ranks" or "hosts": measure the links between all ranks, or between one rank of each host, instead of operations.
  // With a launcher, `ranks` is then ignored: all its processes are the ranks, or one of each host. Empty: operations.
  std::string matrix;
  std::vector<std::string> plugin_path;
  std::string command; // as typed
};

// Runs `regatta comm`: measures each transport with each number of ranks and prints the results. A run that fails is
// reported, and the others go on. Returns the worst of the failed runs' codes and, if a result was wrong, 4; else 0.
// Throws failure if options are wrong or a plugin is missing, before any run starts, or if the user interrupts. Under a
// launcher it returns only in the coordinator, a child of process 0; the launcher's processes serve the launch and exit
// (join/start.hpp). [main]
int comm_verb(const comm_options& options);

// Returns the array "results" of a document regatta.comm/1 (comm/results.hpp) for the transports, operations and sizes
// of the options, all between options.ranks[0] ranks of this host, which do not spin. Ignores `spin`, `matrix` and
// `format`. Prints no results. Throws failure if options are wrong or a run fails. [main]
nlohmann::json measure_comm(const comm_options& options);

} // namespace regatta

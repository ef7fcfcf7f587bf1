// SPDX-License-Identifier: Apache-2.0
//
// The agent of a host: a child of the first process that a launcher started there. It holds the only connection between
// its host and the coordinator. The launched processes of the host connect to it, and it has them start the ranks of
// each run, watches these, and passes their frames on (join/remote_host.hpp). Between runs it serves requests, by
// their member "t":
//
//   join     have all launched processes join a transport; answer: "done", or "error"
//   address  resolve "interface" (launch/address.hpp); answer: "addresses", "interfaces" with their speed and MTU
//   files    look at the files of "paths"; answer: "sums", by path: the SHA-256, "" for a folder, null if it is missing;
//            only those of "read" are read, others have ""
//   listen   answer: "ports" on the addresses "addresses", each open until "probed"
//   probe    connect to "targets", pairs of address and port; answer: "failed", by target: why, "" if it succeeded
//   leave    the launch is over; no answer
#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.hpp"
#include "control/blob.hpp"

namespace regatta {

struct agent_setup {
  unique_fd processes;   // listens for the launched processes of this host
  unique_fd coordinator; // authenticated connection to the coordinator
  blob secret;           // of the launch
};

// Serves until the launch is over, and returns its exit code. Throws failure (run) if the coordinator is gone, or sends a
// frame for a rank that is not of this host. All ranks of the host have then ended. [main]
int run_agent(agent_setup setup);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The agent of a host: a child of the first process that a launcher started there. It holds the only connection between
// its host and the coordinator. The launched processes of the host connect to it, and it has them start the ranks of
// each run, watches these, and passes their frames on ("run": join/remote_host.hpp). Between runs it serves requests,
// by their member "t". An answer has "t": "done", and "error" if the request could not be met, else the members named
// here:
//
//   join     have all launched processes call join() (regatta.launcher/1) of the component "transport" of the plugin
//            "file"
//   address  resolve "interface" (network/interfaces.hpp); answer: "links", as links_of_interfaces()
//   files    look at the files of "paths"; answer: "sums", by path: the SHA-256, "" for a folder, null if it is
//            missing; only those of "read" are read, others have ""
//   libraries  load the plugins "files" in a child; answer: "libraries", the names of all shared libraries in that
//            process, those of the program too, but without these plugins
//   listen   close the ports of the last "listen"; answer: "ports", open ones on the addresses "addresses"
//   probe    connect to "targets", pairs of address and port, at once, for at most 4 s; answer: "failed", by target:
//            why, "" if it succeeded
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

// Serves until the launch is over, and returns 0. Throws failure (run) if the coordinator is gone, sends a frame for a
// rank that is not of this host, or, during a run, if its host gives no sign of life for rank_limits::silence
// (launch/launch.hpp); the ranks of this host were then killed. [main]
int run_agent(agent_setup setup);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Resources of this process and machine that a plugin can leak: threads, descriptors, mappings, processes, files.
#pragma once

#include <set>
#include <string>

namespace regatta::conformance {

struct resource_snapshot {
  // Returns the resources that exist now.
  static resource_snapshot take();
  // Throws failed with the resources that exist now but are not in this object. Files and segments that a running
  // process uses do not count: they may belong to another program. Waits up to 2 s for resources that end by
  // themselves, such as a peer's process or a thread.
  void expect_no_leaks() const;

  std::size_t threads = 0;                // number of threads
  std::multiset<std::string> descriptors; // kinds: "socket", "/memfd:heap (deleted)"
  std::multiset<std::string> shared;      // mappings that other processes could share
  std::set<std::string> children;         // child processes
  std::set<std::string> segments; // this user's files in /dev/shm and TMPDIR; anybody's unattached System V segments
};

} // namespace regatta::conformance

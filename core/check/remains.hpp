// SPDX-License-Identifier: Apache-2.0
//
// Resources that can be left behind in this process and on this machine.
#pragma once

#include <set>
#include <string>

namespace regatta::conformance {

struct remains {
  static remains now();
  // Throws failed if a resource exists that did not when this object was taken. Waits up to 2 s for resources that end
  // by themselves, such as a peer's process or a thread.
  void expect_nothing_new() const;

  std::size_t threads = 0;
  std::multiset<std::string> descriptors; // kinds: "socket", "/memfd:heap (deleted)"
  std::multiset<std::string> shared;      // mappings that other processes could share
  std::set<std::string> children;         // child processes
  std::set<std::string> segments;         // in /dev/shm, System V, TMPDIR; not used by any process
};

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
//
// What could stay behind when something ends: in this process, and on this machine.
#pragma once

#include <set>
#include <string>

namespace regatta::conformance {

struct remains {
  static remains now();
  // Throws failed where anything is there now that was not when this was taken; what ends by itself (a peer's process, a
  // thread) is given a moment.
  void expect_nothing_new() const;

  std::size_t threads = 0;
  std::multiset<std::string> descriptors; // what each is: "socket", "/memfd:heap (deleted)"
  std::multiset<std::string> shared;      // mappings that others could see
  std::set<std::string> children;         // processes below this one
  std::set<std::string> segments;         // /dev/shm, System V's, files in TMPDIR, that no process uses
};

} // namespace regatta::conformance

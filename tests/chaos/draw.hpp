// SPDX-License-Identifier: Apache-2.0
//
// A draw from a seed: a campaign of three cases, and the disturbance that hits it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "processes.hpp"

namespace regatta::chaos {

inline constexpr std::size_t cases = 3;

enum class kind : std::uint8_t {
  rank,        // a signal to one rank
  coordinator, // a signal to the program
  group,       // a signal to the program's process group
  dead_pipe,   // the reader of standard error dies
  full_disk,   // the disk under the result folder fills up
  hung_plugin, // the model, the strategy or the transport does not go on
};

struct disturbance {
  chaos::kind kind;
  int signal = 0;                    // of rank, coordinator and group
  std::uint32_t rank = 0;            // the rank that is hit
  std::size_t after_runs = 0;        // how many runs have finished when the disturbance comes
  std::chrono::milliseconds delay{}; // from the moment at which the ranks of the next run are there
  bool early = false;                // at any moment from the program's start on, `delay` after it
  std::chrono::milliseconds pause{}; // from SIGSTOP to SIGCONT, of coordinator and group
  std::string plugin, at;            // of hung_plugin: "model", "strategy" or "transport", and its parameter `at`
  bool blames_any = false;           // of hung_plugin: several ranks stand still alike; else rank 1 is to blame
};

struct campaign {
  std::uint64_t seed = 0;
  std::string toml;
  std::string options; // further words of the command line
  std::uint32_t ranks = 0;
  chaos::disturbance disturbance{};
  std::size_t hangs = cases; // the case whose plugin hangs
};

// The same seed gives the same campaign. `disks`: a file system can be mounted.
campaign draw(std::uint64_t seed, bool disks);

// "rank SIGKILL", "full disk": a row of the table.
std::string name_of(const disturbance& d);
// With the moment.
std::string describe(const disturbance& d);

} // namespace regatta::chaos

// SPDX-License-Identifier: Apache-2.0
//
// The critical path of a step: the chain of work and messages that ends with the step, and of which each link begins
// when the one before it has ended. Shortening anything else would not have shortened the step.
#pragma once

#include "timeline/rank_trace.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

enum class path_part : std::uint8_t {
  computing, // on the compute thread; input, and waits without a recorded cause, included
  messages,  // from the strategy's call of send to the end of the receive on the other rank
  strategy,  // operations and functions of the strategy, and the time between them
};

// A link of the path: `rank` did `what` from `begin` to `end`.
struct path_link {
  std::uint32_t rank;
  path_part part;
  std::string what;         // such as "conv4_2 backward" or "waiting for bucket 3 of rank 1"
  std::uint64_t begin, end; // ns on the clock of the traces
};

struct critical_path {
  std::uint64_t step = 0;
  std::uint32_t rank = 0;       // the one on which the step ends last
  std::vector<path_link> links; // the last one first; each ends where the one before it in this list begins
  // Returns the time from the begin of the path to the end of the step, in ns.
  std::uint64_t length() const { return links.empty() ? 0 : links.front().end - links.back().begin; }
};

// Returns the steps that a worker has recorded, ascending.
std::vector<std::uint64_t> steps_of(const std::vector<rank_trace>& ranks);

// Returns the path of a step. It is followed backward from the end of the step on the rank on which it ends last:
// through computing, whose innermost span names it; from a wait to the operation, function of the strategy or message
// that ended last before it; from a message to its sender at the time of the send; there, to the operation or function,
// to the bucket that became ready, or to the message on the same lane, whichever ended last. The path ends where a
// worker begins the step, or where nothing earlier is recorded. std::nullopt: no worker has recorded the step.
std::optional<critical_path> critical_path_of(const std::vector<rank_trace>& ranks, std::uint64_t step);

// The time of all links of a path with the same text and rank.
struct path_share {
  std::string what;
  std::uint32_t rank;
  std::uint64_t ns;
};
// Returns the shares of a path, the largest first.
std::vector<path_share> shares_of(const critical_path& path);
// Returns the time of the links of this part together, in ns.
std::uint64_t ns_of(const critical_path& path, path_part part);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Several ranks that run the same body: as threads of this process, each with its own instance, or as processes.
#pragma once

#include "check/endpoint.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace regatta::conformance {

enum class as { threads, processes };

// Where the ranks of a world meet outside the transport, in memory that processes share.
class meeting_place;

class member {
public:
  member(endpoint& e, meeting_place& place) : endpoint_(e), place_(place) {}
  endpoint& operator*() { return endpoint_; }
  endpoint* operator->() { return &endpoint_; }
  // A barrier: returns when every rank has called it as often. Throws if a rank has failed.
  void meet();
  // The same, and polls the transport while it waits.
  void meet_polling();

private:
  endpoint& endpoint_;
  meeting_place& place_;
};

struct world_shape {
  std::uint32_t ranks = 2;
  std::uint32_t lanes = 1;
  as kind = as::threads;
  bool close = true; // after the body; must be false if the body leaves operations pending
};

// Under a launcher (regatta.launched/1): this process is one of `size` and has the same rank in every world. All
// processes run the same tests in the same order; a process without a rank in a world waits for its end. They meet in
// the file `meeting`, which is removed once all are there. Throws failed if a process does not come. Call it once.
// [main]
void join_launched(const std::filesystem::path& meeting, std::uint32_t rank, std::uint32_t size);

// Connects the ranks, runs the body on each, and closes. Returns errors, one line for each rank; empty if there is
// none. A process that a signal kills is reported as "rank 1: signal 9". If no call of the plugin returns for 9 s in
// any process, all are killed. Throws timed_out if an operation did not end in time.
std::vector<std::string> run(const subject& which, const world_shape& shape, const std::function<void(member&)>& body);

// Does the same, and throws failed if a rank had an error.
void run_ranks(const subject& which, const world_shape& shape, const std::function<void(member&)>& body);

} // namespace regatta::conformance

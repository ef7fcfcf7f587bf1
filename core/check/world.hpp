// SPDX-License-Identifier: Apache-2.0
//
// Several ranks that run the same body: as threads of this process, each with an instance of its own, or as processes.
#pragma once

#include "check/endpoint.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace regatta::conformance {

enum class as { threads, processes };

// Where the ranks of a world meet, outside the transport: in memory that processes share.
class meeting_place;

class member {
public:
  member(endpoint& e, meeting_place& place) : endpoint_(e), place_(place) {}
  endpoint& operator*() { return endpoint_; }
  endpoint* operator->() { return &endpoint_; }
  // Returns when every rank has called it as often. Throws where one has failed.
  void meet();
  // ... and keeps the transport moving meanwhile.
  void meet_polling();

private:
  endpoint& endpoint_;
  meeting_place& place_;
};

struct world_shape {
  std::uint32_t ranks = 2;
  std::uint32_t lanes = 1;
  as kind = as::threads;
  bool close = true; // after the body; a body that leaves operations outstanding must not
};

// Where an outside launcher has started the ranks (regatta.launched/1): this process is one of `size`, the same rank in
// every world. All of them run the same tests one after the other; who is no rank of a world waits for its end. They
// meet in a file of this name, which is gone when all are there. Throws failed where one does not come. [main], once
void join_launched(const std::filesystem::path& meeting, std::uint32_t rank, std::uint32_t size);

// Connects the ranks, runs the body on each and closes. Returns what went wrong, a line a rank; empty: nothing. A
// process that dies by a signal is reported as "rank 1: signal 9". Processes in none of which a call of the plugin comes
// back for 9 s are ended. Throws timed_out where something did not end in time.
std::vector<std::string> run(const subject& which, const world_shape& shape, const std::function<void(member&)>& body);

// ... and fails the test where anything did.
void run_ranks(const subject& which, const world_shape& shape, const std::function<void(member&)>& body);

} // namespace regatta::conformance

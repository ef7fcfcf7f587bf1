// SPDX-License-Identifier: Apache-2.0
//
// Several ranks that run the same body: as threads of this process, each with its own instance, or as processes.
#pragma once

#include "check/harness/endpoint.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace regatta::conformance {

enum class ranks_as { threads, processes };

// Barrier, connection blobs and error texts of a group's ranks, in memory that their processes share. Does not use the
// transport.
class rank_group_state;

// One rank, as errors_of_ranks() passes it to the body. Use it only in that call, on its thread.
class member {
public:
  member(endpoint& e, rank_group_state& state) : endpoint_(e), state_(state) {}
  endpoint& operator*() { return endpoint_; }
  endpoint* operator->() { return &endpoint_; }
  // A barrier: returns when every rank has called it as often. Throws failed if another rank has failed, and timed_out
  // if no call of the plugin returns in any rank for operation_timeout + peer_failure_timeout. Without
  // report_progress_to() (--in-process, launcher) it throws timed_out that long after its begin, even if calls return.
  void barrier();
  // As barrier(), and polls the transport about a thousand times a second meanwhile. Throws timed_out operation_timeout
  // + peer_failure_timeout after its begin, even if calls of the plugin return.
  void barrier_polling();

private:
  endpoint& endpoint_;
  rank_group_state& state_;
};

struct rank_group_shape {
  std::uint32_t ranks = 2; // at most 8
  std::uint32_t lanes = 1;
  ranks_as kind = ranks_as::threads; // ignored after join_launcher_ranks()
  bool close = true;                 // call close() after the body; must be false if the body leaves operations pending
};

// Makes this process one of `size` processes of a launcher (regatta.launcher/1): later calls of errors_of_ranks() use
// these processes, and this one has rank `rank` in every rank group. All processes must run the same tests in the same
// order; a process without a rank in a group waits for its end. The processes share memory through the file
// `shared_file`, which is removed once all have joined. Throws failed if that file belongs to another user, or if
// process 0 does not join within 60 s; and timed_out if another one does not within 240 s. Call it once. [main]
void join_launcher_ranks(const std::filesystem::path& shared_file, std::uint32_t rank, std::uint32_t size);

// Connects the ranks, runs the body on each at the same time, each in its own thread or process, and closes. Returns
// one line for each rank that failed, "rank 1: ..."; ranks that gave up because of it are left out, and "every rank:
// ..." stands for the same error in all. A process that a signal kills is "rank 1: signal 9". Every exception of the
// body is an error of its rank, also skipped. With ranks_as::processes, all are killed if they hang (hang_watch with
// rank_call_limit), but only after report_progress_to(). Throws timed_out, in place of returning, if a rank hung or an
// operation did not end in time; skipped if the transport connects no ranks or a launcher started too few. [main]
std::vector<std::string> errors_of_ranks(const subject& which, const rank_group_shape& shape,
                                         const std::function<void(member&)>& body);

// As errors_of_ranks(), but throws failed with the errors if there are any.
void run_ranks(const subject& which, const rank_group_shape& shape, const std::function<void(member&)>& body);

} // namespace regatta::conformance

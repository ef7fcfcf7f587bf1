// SPDX-License-Identifier: Apache-2.0
//
// Starts the ranks of one run, watches them, and collects their results. No rank outlives the call, except the
// processes of another launcher, which serve the next run, and, if the call throws, ranks on other hosts: their agents
// kill them when the launch ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "launch/stall_detector.hpp"

namespace regatta {

class host_link;
class rank_starter;

struct rank_plan {
  std::string role;      // "worker 1", "server 0", "worker 0 + server 0": for messages
  std::vector<int> cpus; // CPUs to pin it to; empty: not pinned
  // Returned by control_client::job() in the rank. Ranks share it where they have the same: it grows with their number.
  std::shared_ptr<const nlohmann::json> job;
  // With launch_plan::hosts: the host of the rank there, and the launcher's process that starts it (host_link::slots).
  std::uint32_t host = 0, slot = 0;
};

// A rank counts as dead if it sends nothing for `silence`, has not connected within `start`, or has been stopped by a
// signal for `stopped`. That is a failure; after its result only a warning.
struct rank_limits {
  std::chrono::milliseconds silence{3500};
  std::chrono::milliseconds start{15000};  // a busy machine starts ranks slowly
  std::chrono::milliseconds stopped{2000}; // connected or not
  bool debugged = false;                   // ignore all three
};

struct launch_plan {
  std::vector<rank_plan> ranks;
  std::string address = "127.0.0.1"; // numeric, to listen on
  std::string program;               // path; empty: this program; its arguments: control/rank_arguments.hpp
  // How ranks on this host are started; must outlive launch(). Null: as children of this process, by `program`.
  rank_starter* starter = nullptr;
  rank_limits limits;
  stall_limits stall{}; // for ranks that run, but make no progress
  // The hosts on which a launcher has started agents; must outlive launch(). Empty: the ranks run on this host, started
  // by `starter`. With `lasting`, the ranks are the launcher's processes themselves, else these start them.
  std::vector<host_link*> hosts;
  bool lasting = false;
};

struct rank_progress {
  std::uint64_t step = 0, samples = 0; // completed so far, warm-up included
};

// The value of `rank` in launch_hooks::log for a message of the coordinator itself.
inline constexpr std::uint32_t coordinator_rank = UINT32_MAX;

// Called on the thread that called launch(); a hook may be empty. While a hook runs, nothing watches the ranks. An
// exception in a hook ends the run, and launch() rethrows it.
struct launch_hooks {
  std::function<void(const std::vector<rank_progress>&)> progress; // by rank; a few times a second
  // Messages that ranks log (`level` is RG_LOG_*), and lines that they write to standard output (info) and error
  // (warning); the output of another launcher's processes goes to that launcher.
  std::function<void(std::uint32_t rank, int level, const std::string& text)> log;
};

// Which rank ended the run, and why. Only the first cause is kept: later failures are its consequences.
struct rank_failure {
  std::uint32_t rank = 0;
  std::string message; // "rank 1 (worker 1, pid 4711): killed by SIGKILL; last operation: backward (12 steps done)"
  int code = 1;        // exit_code
  std::string dump;    // if the run made no progress: lines that say what each rank waits for; else empty
};

struct launch_result {
  std::vector<nlohmann::json> results; // by rank; null: no result came
  std::optional<rank_failure> failure; // std::nullopt: every rank gave its result, or the run was interrupted
  std::vector<std::pair<std::uint32_t, std::string>> warnings; // rank, and how it ended wrongly after its result
  bool interrupted = false;                                    // SIGINT, SIGTERM or SIGHUP
  // With launch_plan::hosts: host_link::clock() of those that had a rank, in their order there.
  std::vector<nlohmann::json> hosts;
};

// [main] Runs the ranks, and returns when all have ended. Within 5 s of a rank's death no process that launch() started
// is left. A rank that fails is not thrown, but returned in `failure`. Until launch() returns, SIGINT, SIGTERM and
// SIGHUP end the run, and a second signal ends the program (launch/interruption.hpp; a signal that came before, within
// an interruption of the caller, counts as the first). Meanwhile SIGPIPE is ignored, and SIGCHLD has its default
// action. Only one launch at a time in a process. Throws failure (run) if it cannot listen or start a process, or if a
// host of launch_plan::hosts has left the launch before.
launch_result launch(const launch_plan& plan, const launch_hooks& hooks);

} // namespace regatta

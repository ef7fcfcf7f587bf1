// SPDX-License-Identifier: Apache-2.0
//
// Starts the ranks of one run on this machine, watches them, and brings back what they measured. Nothing outlives it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "launch/standstill.hpp"

namespace regatta {

class outside_ranks;

struct rank_plan {
  std::string role;      // "worker 1", "server 0", "worker 0 + server 0": for people
  std::vector<int> cpus; // pinned there; empty: wherever
  nlohmann::json job;    // what the rank gets from control_client::job()
};

struct launch_plan {
  std::vector<rank_plan> ranks;
  std::string address = "127.0.0.1";       // to listen on
  std::string program;                     // empty: this program; called as in control/invitation.hpp
  std::chrono::milliseconds silence{3500}; // a rank that sends nothing for so long is taken for dead
  std::chrono::milliseconds start{15000};  // as is one that has not connected: a busy machine starts slowly
  std::chrono::milliseconds stopped{2000}; // as is one that is stopped by a signal, whether it has connected or not
  standstill_limits standstill{};          // and one that lives, but achieves nothing
  bool debugged = false;                   // ranks may be stopped or silent for as long as they like
  outside_ranks* outside = nullptr;        // whose ranks are invited; null: they are started
};

struct rank_progress {
  std::uint64_t step = 0, samples = 0;
};

// In launch_hooks::log: no rank, but the one who launches.
inline constexpr std::uint32_t coordinator_rank = UINT32_MAX;

// Called on the thread that launches. What they throw ends the run and comes out of launch().
struct launch_hooks {
  std::function<void(const std::vector<rank_progress>&)> progress; // a few times a second
  // What ranks log (`level` as RG_LOG_*), and each line they write to standard output (info) and error (warning).
  std::function<void(std::uint32_t rank, int level, const std::string& text)> log;
};

// How a rank ended a run: the first cause, the rest are consequences.
struct rank_failure {
  std::uint32_t rank = 0;
  std::string message; // "rank 1 (worker 1, pid 4711): killed by SIGKILL; last operation: backward (12 steps done)"
  int code = 1;        // exit_code
  std::string dump;    // of a run that stood still: lines that say who waits for what
};

struct launch_result {
  std::vector<nlohmann::json> results; // by rank; null where none came
  std::optional<rank_failure> failure;
  std::vector<std::pair<std::uint32_t, std::string>> warnings; // by rank: how it ended wrongly, its result being in
  bool interrupted = false;                                    // SIGINT, SIGTERM or SIGHUP
};

// Runs to the end, however it ends: within 5 s of a death no process of the run is left. Until it returns, SIGINT,
// SIGTERM and SIGHUP end the run, and a second of them the program (launch/interruption.hpp: also one that came before,
// within an interruption of the caller's); SIGPIPE is ignored and SIGCHLD is as by default. One at a time in a
// process. Throws failure if the run cannot start.
launch_result launch(const launch_plan& plan, const launch_hooks& hooks);

} // namespace regatta

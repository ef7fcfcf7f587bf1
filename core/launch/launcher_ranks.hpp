// SPDX-License-Identifier: Apache-2.0
//
// Ranks that another launcher has started. Under `mpirun -n N regatta run FILE.toml` (or `regatta comm`) each of the
// N processes lives through all cases and has the same rank in each. Process 0 forks. Its child, called the campaign
// here, runs the cases and the coordinator; process 0 itself becomes rank 0. For each run the campaign starts no
// processes, but sends requests to these, over abstract Unix sockets whose name contains the launcher's name for the
// job. So all processes must be on one host. Both ends check that the other one belongs to the same user (SO_PEERCRED).
#pragma once

#include "base/failure.hpp"
#include "control/blob.hpp"
#include "launch/process.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct launcher_process {
  std::string launcher;             // "mpirun", "srun", ...
  std::string job;                  // name of this launch, the same in all its processes
  std::uint32_t rank = 0, size = 0; // of this process; number of processes
};

// Returns the position of this process among the launcher's processes, or nullopt if no launcher started it. Throws
// failure (usage) as find_launcher() of join/environment.hpp does, and if the launcher does not tell the number of
// processes. [main]
std::optional<launcher_process> find_launcher_process();

// Returns, but does not throw, the error (usage) for a run without launcher whose transport needs one. The error tells
// the user to start "COMMAND RANKS regatta VERB": `command` is the launcher's up to the number of processes, such as
// "mpirun -n"; `ranks` the number of processes that the run needs; `verb` the arguments of regatta, such as
// "run FILE.toml".
failure launcher_missing(const std::string& transport, const std::string& command, std::uint32_t ranks,
                         const std::string& verb);

// The campaign's side: a connection to each of the launcher's processes. A process handles one request at a time: after
// start_run(rank), call outcome(rank) before the next request to it. Functions that send a request throw failure (run)
// if the process is gone. [main]
class launcher_ranks {
public:
  // Waits until every process of `self` has connected to `listener`. Throws failure (run) if they have not all done so
  // within 30 s.
  launcher_ranks(unique_fd listener, const launcher_process& self);
  ~launcher_ranks(); // tells the processes that the campaign has ended; does not wait for them
  launcher_ranks(const launcher_ranks&) = delete;
  launcher_ranks& operator=(const launcher_ranks&) = delete;

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
  const std::string& launcher_name() const noexcept { return launcher_; }
  pid_t pid(std::uint32_t rank) const noexcept { return members_[rank].pid; }

  // Makes every process load the plugin `file` and call the join() of its component `transport` (regatta.launcher/1).
  // Waits until all have done so. Does nothing if this component has joined before; each transport of a file joins by
  // itself. Throws failure (run) if a process cannot join.
  void join(const std::string& file, const std::string& transport);
  // Makes the rank take part in the run of the coordinator at host:port, on these CPUs (empty: any), and returns at
  // once. `secret` proves to the coordinator that it is the rank. The rank writes to the status page of the descriptor
  // `status`; it receives a duplicate, and the caller keeps its own.
  void start_run(std::uint32_t rank, const std::string& host, std::uint16_t port, const blob& secret,
                 const std::vector<int>& cpus, int status);
  // watch() returns a new descriptor that becomes readable when the rank has finished the run or its process is gone:
  // wait for it, but read nothing from it. outcome() waits for the same and returns the rank's exit code, or nullopt if
  // the process is gone; call it once per run.
  unique_fd watch(std::uint32_t rank) const;
  std::optional<int> outcome(std::uint32_t rank);

private:
  struct member {
    unique_fd socket;
    pid_t pid = -1;
  };

  std::string launcher_;
  std::vector<member> members_;
  std::vector<std::pair<std::string, std::string>> joined_; // file and transport, joined by all processes
};

// Functions that a process calls for the campaign's requests, launcher_ranks::join() and start_run(). Both return an
// exit code and must not throw. run() takes part in one run until that has ended, and owns the descriptor `status`.
struct launcher_request_handlers {
  std::function<int(const std::string& file, const std::string& transport)> join;
  std::function<int(const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret, int status)> run;
};

// Returns null if there is no launcher. Under a launcher, process 0 forks, and the function returns the campaign's side
// in the child, once all processes have connected. It does not return in the launcher's processes themselves: they call
// `handlers` on request until the campaign ends, and then exit, process 0 with the campaign's exit code (1 if a signal
// killed the campaign) and the others with 0. Throws failure as find_launcher_process() does, and failure (run) if not
// all processes are on this host. Call it before there are threads, because it forks. [main]
std::unique_ptr<launcher_ranks> start_under_launcher(const launcher_request_handlers& handlers);

} // namespace regatta

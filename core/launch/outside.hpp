// SPDX-License-Identifier: Apache-2.0
//
// Ranks that an outside launcher has started. Under `mpirun -n N regatta run FILE.toml` each process stays for all
// cases and is one rank in each. Process 0 forks; its child is the campaign. Instead of starting processes for a run,
// the campaign invites these, over a Unix socket with the launcher's name for the job. Both ends must belong to one
// user (SO_PEERCRED), so all processes must be on one host.
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

struct outside_place {
  std::string launcher; // "mpirun"
  std::string job;      // name of this launch, the same in all its processes
  std::uint32_t rank = 0, size = 0;
};

// Returns this process's rank from the environment of the launcher: OpenMPI's, PMI's or Slurm's. Returns nullopt if no
// launcher started it. Throws failure (usage) if the environment contradicts itself. [main]
std::optional<outside_place> find_outside_place();

// Returns the error for a transport that needs a launcher if there is none. `command` is the launcher's command up to
// the number of processes.
failure not_launched(const std::string& transport, const std::string& command, std::uint32_t ranks,
                     const std::string& verb);

// The campaign's side. [main]
class outside_ranks {
public:
  // Waits until every process has connected. Throws failure if one does not within 30 s.
  outside_ranks(unique_fd listener, const outside_place& place);
  ~outside_ranks(); // tells the processes that the campaign has ended
  outside_ranks(const outside_ranks&) = delete;
  outside_ranks& operator=(const outside_ranks&) = delete;

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
  const std::string& launcher() const noexcept { return launcher_; }
  pid_t pid(std::uint32_t rank) const noexcept { return members_[rank].pid; }

  // Makes every process load the plugin and join the others in its transport (regatta.launched/1). Does so once for
  // each file. Throws failure if a process cannot join.
  void join(const std::string& file, const std::string& transport);
  // Makes the rank take part in the run of the coordinator at host:port, on these CPUs (empty: any). The rank writes to
  // the status page behind the descriptor `status`.
  void invite(std::uint32_t rank, const std::string& host, std::uint16_t port, const blob& secret,
              const std::vector<int>& cpus, int status);
  // watch() returns a descriptor that is readable once the rank has finished the run. outcome() then returns its exit
  // code; nullopt if the process is gone.
  unique_fd watch(std::uint32_t rank) const;
  std::optional<int> outcome(std::uint32_t rank);

private:
  struct member {
    unique_fd socket;
    pid_t pid = -1;
  };
  void tell(std::uint32_t rank, const nlohmann::json& what, int descriptor = -1);

  std::string launcher_;
  std::vector<member> members_;
  std::vector<std::string> joined_;
};

// Functions that a process runs for the campaign's requests. Both return an exit code and must not throw.
struct outside_duties {
  std::function<int(const std::string& file, const std::string& transport)> join;
  std::function<int(const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret, int status)> run;
};

// Returns null if there is no launcher. Under a launcher, returns the campaign's side in the child of process 0. In
// every other process it serves requests until the campaign ends, and then exits; process 0 exits with the campaign's
// exit code. Forks: call it before there are threads. [main]
std::unique_ptr<outside_ranks> enter_outside_launch(const outside_duties& duties);

} // namespace regatta

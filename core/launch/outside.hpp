// SPDX-License-Identifier: Apache-2.0
//
// Ranks that an outside launcher has started: under `mpirun -n N regatta run FILE.toml` every process stays for all
// cases and is one rank in each. Process 0 forks; its child is the campaign, which invites the processes to a run as
// it would have started them, over a Unix socket that bears the launcher's name for the job. Both ends must be of one
// user (SO_PEERCRED); so all processes must be on one host.
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
  std::string job;      // what this launch is called, the same in all its processes
  std::uint32_t rank = 0, size = 0;
};

// This process's place, from the launcher's environment: OpenMPI's, PMI's or Slurm's. Nothing: a person started it.
// Throws failure (usage) where the environment contradicts itself. [main]
std::optional<outside_place> find_outside_place();

// What to say of a transport that needs a launcher (`command`, up to the number of processes) where there is none.
failure not_launched(const std::string& transport, const std::string& command, std::uint32_t ranks,
                     const std::string& verb);

// The campaign's end. [main]
class outside_ranks {
public:
  // Waits until every process is there. Throws failure where one does not come within 30 s.
  outside_ranks(unique_fd listener, const outside_place& place);
  ~outside_ranks(); // tells the processes that all is over
  outside_ranks(const outside_ranks&) = delete;
  outside_ranks& operator=(const outside_ranks&) = delete;

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
  const std::string& launcher() const noexcept { return launcher_; }
  pid_t pid(std::uint32_t rank) const noexcept { return members_[rank].pid; }

  // Every process loads the plugin and joins what its transport needs (regatta.launched/1). Once for each file.
  void join(const std::string& file, const std::string& transport);
  // The rank takes part in the run of this coordinator, on these CPUs (none: wherever), and writes to the status page
  // behind `status`.
  void invite(std::uint32_t rank, const std::string& host, std::uint16_t port, const blob& secret,
              const std::vector<int>& cpus, int status);
  // A descriptor that is readable once the run is over for the rank, and then how: its exit code; nothing: it is gone.
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

// What a process does when it is invited; both return an exit code and throw nothing.
struct outside_duties {
  std::function<int(const std::string& file, const std::string& transport)> join;
  std::function<int(const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret, int status)> run;
};

// Under a launcher: in process 0's child returns the campaign's end; every other process does its duties until the
// campaign is over and then ends, process 0 with the campaign's exit code. Otherwise nothing. Forks: to be called
// before there are threads. [main]
std::unique_ptr<outside_ranks> enter_outside_launch(const outside_duties& duties);

} // namespace regatta

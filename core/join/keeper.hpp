// SPDX-License-Identifier: Apache-2.0
//
// A process that a launcher started, for as long as it lives: it runs no plugin, and starts a fresh process of this
// program for every rank that its agent asks for, so that it has the launcher's environment (GPUs, CPUs, limits). If a
// transport needs the launcher's own processes (regatta.launcher/1), it is the rank itself. Requests of the agent, by
// their member "t":
//
//   join   load the plugin "file" and call the join() of its component "transport"; answer: "code"
//   run    be rank "rank" of the coordinator at "host" and "port"; answer at the end: "code"
//   fork   start rank "rank"; answers: "pid" with three descriptors (pidfd, standard output and error), or "error";
//          when the rank has ended: "status", as waitpid() stores it
//   end    the launch is over
//
// run and fork also have "secret" and "cpus" (rank_starter::order), and come with the descriptor of the rank's status
// page.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/blob.hpp"
#include "launch/rank_starter.hpp"

namespace regatta {

// Functions that a launched process calls for requests. Both return an exit code and must not throw. run() takes part
// in one run until that has ended, and owns the descriptor `status`.
struct launcher_request_handlers {
  std::function<int(const std::string& file, const std::string& transport)> join;
  std::function<int(const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret, int status)> run;
};

// Serves the agent's requests until the launch is over or the agent is gone. Returns whether it is over. Throws failure
// (run) if the agent ends before it has taken an answer. [main]
bool serve_agent(int agent, const launcher_request_handlers& handlers);

// The agent's side: the launched processes of its host, numbered by slot (host_link::slots). A process handles one
// request at a time. Functions that send a request throw failure (run) if the process is gone. [main]
class keepers : public rank_starter {
public:
  ~keepers() override; // tells the processes that the launch is over; does not wait for them

  void add(std::uint32_t slot, unique_fd socket, pid_t pid);
  bool has(std::uint32_t slot) const { return members_.count(slot) != 0; }
  // Returns which processes have ended, ascending.
  std::vector<std::uint32_t> gone() const;

  // Makes every process join a transport. Waits until all have done so. Throws failure (run) if one cannot.
  void join(const std::string& file, const std::string& transport);

  // Says which process starts which rank in the next run, and whether it is the rank itself.
  void assign(std::map<std::uint32_t, std::uint32_t> slot_of_rank, bool lasting);
  process start(const order& o) override;
  end reap(std::uint32_t rank) override;
  void kill(std::uint32_t rank) noexcept override;
  bool lasting() const noexcept override { return lasting_; }

private:
  struct member {
    unique_fd socket;
    pid_t pid = -1;
    unique_fd rank; // pidfd of the rank that it has started
  };
  member& of_rank(std::uint32_t rank) { return members_.at(slot_of_rank_.at(rank)); }

  std::map<std::uint32_t, member> members_; // by slot
  std::map<std::uint32_t, std::uint32_t> slot_of_rank_;
  bool lasting_ = false;
};

} // namespace regatta

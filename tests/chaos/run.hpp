// SPDX-License-Identifier: Apache-2.0
//
// The program under a disturbance, and what is left of it.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "draw.hpp"

namespace regatta::chaos {

using clock = std::chrono::steady_clock;
using test::temporary_folder;

// The outcome of the disturbed program.
struct observation {
  bool hit = false;    // the disturbance came before the program had ended
  std::string skipped; // why it did not come
  pid_t pid = -1;      // of the rank that was hit
  int code = 0;        // the exit code, or the negative signal
  // From the disturbance to its report; to the program's end where coordinator or group was hit or a plugin hangs.
  std::optional<double> seconds;
  std::set<std::string> sockets; // listening sockets of the run's processes when the disturbance came, by inode
  std::string out, err;
};

// Inodes of all listening TCP sockets of this machine.
std::set<std::string> listening_sockets();

// A folder with the experiment in it, and a small file system in it where the disk fills up.
class campaign_run {
public:
  explicit campaign_run(const campaign& c);
  ~campaign_run(); // no process of it is left
  campaign_run(const campaign_run&) = delete;
  campaign_run& operator=(const campaign_run&) = delete;

  observation disturbed();
  // The same command with --resume, undisturbed.
  observation resumed();

  // Processes that were started with this run's token in their environment.
  std::vector<pid_t> processes() const;
  test::fs::path result() const { return folder_.path / "disk" / "r"; }
  test::fs::path temporary() const { return folder_.path / "tmp"; }

private:
  pid_t start(const std::string& more, int err);
  void await_moment(pid_t program, observation& o) const;
  void disturb(pid_t program, observation& o);
  void signal_rank(pid_t program, observation& o) const;
  void signal_program(pid_t program, observation& o) const;
  void fill_disk() const;
  std::size_t finished_runs() const;
  bool is_reported(const observation& o) const;
  std::vector<pid_t> ranks_of(pid_t program) const;
  std::set<std::string> listening() const;

  const campaign& campaign_;
  temporary_folder folder_;
  std::string token_;
  bool mounted_ = false;
  int reader_ = -1; // of standard error, where that is a pipe
};

} // namespace regatta::chaos

// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_starter.hpp"

#include <csignal>

#include <sys/wait.h>

#include "control/rank_arguments.hpp"

namespace regatta {

child_starter::~child_starter() {
  for (auto& [rank, child] : children_) {
    kill_process(child);
    reap_process(child);
  }
}

process child_starter::start(const order& o) {
  const auto arguments = [&](int secret_fd) { return to_command_line(o.host, o.port, o.rank, secret_fd, o.status); };
  process started =
      start_process(program_.empty() ? "/proc/self/exe" : program_, arguments, o.secret, o.cpus, o.status);
  children_[o.rank].pid = started.pid;
  return started;
}

rank_starter::end child_starter::reap(std::uint32_t rank) {
  const auto child = children_.find(rank);
  const int status = reap_process(child->second);
  children_.erase(child);
  return end_of(status);
}

void child_starter::kill(std::uint32_t rank) noexcept {
  if (const auto child = children_.find(rank); child != children_.end()) kill_process(child->second);
}

rank_starter::end end_of(int status) {
  return {describe_status(status), status == 0, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL};
}

} // namespace regatta

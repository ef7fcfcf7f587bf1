// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "control/blob.hpp"
#include "launch/process.hpp"

namespace regatta {

// How the processes of ranks are started, ended and reaped on this host. Functions throw failure (run) if a process
// cannot be started. [main]
class rank_starter {
public:
  struct order {
    std::uint32_t rank = 0;
    std::string host; // where the rank finds its coordinator: a numeric address
    std::uint16_t port = 0;
    blob secret;
    std::vector<int> cpus; // empty: any
    int status = -1;       // descriptor of its status page (control/status_page.hpp); stays the caller's
  };
  struct end {
    std::string how; // "killed by SIGKILL"
    bool well = false;
    bool killed = false; // by SIGKILL: memory may have run out
  };

  virtual ~rank_starter() = default;
  // Starts the rank. Of the result, `handle` becomes readable once the rank has ended; `output` and `errors` are -1 if
  // they go elsewhere.
  virtual process start(const order& o) = 0;
  // Returns how the rank ended. Call it once, after its `handle` has become readable; it waits for the end.
  virtual end reap(std::uint32_t rank) = 0;
  virtual void kill(std::uint32_t rank) noexcept = 0;
  // The ranks are processes of a launcher, which live through all runs: to kill one ends the launcher's whole job.
  virtual bool lasting() const noexcept { return false; }
};

// Starts ranks as children of this process.
class child_starter : public rank_starter {
public:
  // `program`: path; empty: this program.
  explicit child_starter(std::string program) : program_(std::move(program)) {}
  ~child_starter() override; // kills and reaps those that are left
  process start(const order& o) override;
  end reap(std::uint32_t rank) override;
  void kill(std::uint32_t rank) noexcept override;

private:
  const std::string program_;
  std::map<std::uint32_t, process> children_; // without handle, output and errors
};

// Returns how a process ended, from the status that waitpid() stores.
rank_starter::end end_of(int status);

} // namespace regatta

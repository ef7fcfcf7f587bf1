// SPDX-License-Identifier: Apache-2.0
//
// The ranks of one host, as the coordinator sees them: on its own host (launch/local_host.hpp), or on another one
// through the agent there (join/remote_host.hpp). All functions are called on the thread that runs the io_context.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "control/channel.hpp"
#include "control/status_page.hpp"

namespace regatta {

// The state of a rank that is known without asking it.
struct rank_sign {
  rank_status status;
  std::string last_error; // its last line on standard error; empty: none
};

// Receives the events of a host's ranks. `rank` is the number in the run.
class host_events {
public:
  virtual ~host_events() = default;
  virtual void started(std::uint32_t rank, pid_t pid) = 0;
  virtual void connected(std::uint32_t rank) = 0; // it has proven the secret, and has its job
  // A frame of the rank (control/client.cpp). May throw failure (run) or nlohmann::json::exception: the rank is then to
  // blame for a wrong frame.
  virtual void received(std::uint32_t rank, message&& frame) = 0;
  virtual void disconnected(std::uint32_t rank) = 0; // without a result or a failure of its own
  // `what` ends the rank, and is no consequence of another rank's end: no heartbeat, a wrong frame, its host is lost.
  virtual void certain(std::uint32_t rank, const std::string& what) = 0;
  virtual void warned(std::uint32_t rank, const std::string& what) = 0;          // `what` came after the rank's result
  virtual void ended(std::uint32_t rank, const std::string& how, bool well) = 0; // its process; `well`: exit code 0
  virtual void finished() = 0; // all ranks of the host have ended; no event comes after it
  virtual void log(std::uint32_t rank, int level, const std::string& text) = 0;
};

class rank_host {
public:
  // Kills ranks that are left on this host; an agent kills its own when its connection ends.
  virtual ~rank_host() = default;
  // Begins to start the ranks. Throws failure (run) if that is impossible.
  virtual void start() = 0;
  // Sends a frame to those of `ranks`, all of this host, that are connected.
  virtual void send(std::span<const std::uint32_t> ranks, const nlohmann::json& header,
                    std::shared_ptr<const blob> payload = {}) = 0;
  // Tells every rank that the run has ended because of rank `dead` (UINT32_MAX: of no rank), kills ranks that have not
  // connected unless they are a launcher's own processes, and after a grace period all that are left.
  virtual void end(std::uint32_t dead, const std::string& why) = 0;
  virtual void kill(std::uint32_t rank) = 0;
  virtual void kill_all() = 0;
  virtual rank_sign sign(std::uint32_t rank) const = 0;
  // Returns whether the heartbeat of a rank, or of the host, is late.
  virtual bool quiet(std::chrono::steady_clock::time_point now) const = 0;
  // Called every 250 ms. `late` is by how much the caller itself did not run meanwhile; 0: not at all.
  virtual void tick(std::chrono::steady_clock::time_point now, std::chrono::steady_clock::duration late) = 0;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// One run from start to end: starts the ranks on their hosts, answers their collective calls, collects their results,
// and finds the cause if the run ends early. All of it runs on the thread that calls run(). control/client.hpp is the
// rank's side. coordinator_watch.cpp detects runs without progress.
//
// The run ends at the first certain cause, and reports it: for example a process that died, an exception in a rank, or
// a rank that fell silent. A lost connection between two ranks, or between a rank and the coordinator, is only a
// suspicion: the process at one end may have died, and the coordinator may learn that later than the loss. So the first
// suspicion waits 500 ms, and longer while a heartbeat is late. It becomes the cause if no certain one comes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/asio.hpp" // before any other of Asio's

#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/failure.hpp"
#include "launch/all_gather.hpp"
#include "launch/interruption.hpp"
#include "launch/launch.hpp"
#include "launch/rank_host.hpp"
#include "launch/rank_starter.hpp"
#include "launch/signals.hpp"
#include "launch/stall_detector.hpp"

namespace regatta {

class coordinator : public host_events {
public:
  // Both must outlive this object.
  coordinator(const launch_plan& plan, const launch_hooks& hooks);
  // Kills the processes of the run that are left on this host, and reaps those that run() started. An agent kills those
  // of its host when its connection ends.
  ~coordinator() override;
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;

  // Returns when all ranks have ended. If the run ends early, the result has the cause. Call it once. Throws failure if
  // the run cannot start; rethrows exceptions of hooks. launch() (launch/launch.hpp) has the whole contract.
  launch_result run();

private:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds tick{250};
  static constexpr std::uint32_t nobody = UINT32_MAX;

  struct member {
    std::uint32_t rank;
    rank_host* host = nullptr;
    pid_t pid = -1;          // stays after the process has ended, for messages
    bool connected = false;  // it has been
    bool running = false;    // its process has not ended
    bool reported = false;   // it has sent "failed"
    bool has_result = false; // it has sent "result"
    bool open = false;       // its connection has not ended
    bool warned = false;     // warn() was called for it
    nlohmann::json state;    // its answer to "describe"; null: none yet
  };

  // Runs the coroutine on io_. An exception in it ends the run, and run() rethrows it.
  void spawn(asio::awaitable<void> coroutine);
  // Creates the objects of hosts_, and assigns the ranks to them.
  void divide_ranks();

  // host_events
  void started(std::uint32_t rank, pid_t pid) override;
  void connected(std::uint32_t rank) override;
  void received(std::uint32_t rank, message&& frame) override;
  void disconnected(std::uint32_t rank) override;
  void certain(std::uint32_t rank, const std::string& what) override;
  void warned(std::uint32_t rank, const std::string& what) override;
  void ended(std::uint32_t rank, const std::string& how, bool well) override;
  void finished() override;
  void log(std::uint32_t rank, int level, const std::string& text) override;

  // Adds a rank's part to an all-gather, and answers all its members once it is complete.
  void gather(const member& m, message&& f);
  // Sends a frame to these ranks, which ascend; empty: to all.
  void send(std::span<const std::uint32_t> ranks, const nlohmann::json& header,
            const std::shared_ptr<const blob>& payload = {});

  // Every `tick`: lets the hosts check their ranks, reports progress to the hook, and looks for a standstill.
  asio::awaitable<void> keep_time();
  void look_for_standstill(clock::time_point now);
  // Asks every connected rank without a result to describe what it does, waits at most 1.5 s for the answers, and calls
  // end_standstill().
  asio::awaitable<void> describe_standstill(std::vector<std::uint32_t> stuck);
  // Returns whether every connected rank without a result has answered.
  bool all_described() const;
  // Ends the run because of one of the ranks `stuck`, and logs the state of all running ranks without a result.
  void end_standstill(const std::vector<std::uint32_t>& stuck);
  // Returns whether the heartbeat of a connected rank is late.
  bool somebody_is_quiet(clock::time_point now) const;
  // Ends the run when the user interrupts it.
  asio::awaitable<void> heed_signals();

  std::string name_of(const member& m) const;
  rank_failure make_failure(const member& m, const std::string& what, int code) const;
  // Ends the run with this cause; does nothing if the run is ending already. `code` is an exit_code.
  void fail(const member& m, const std::string& what, int code);
  // Adds a warning about how a rank ended after its result; only the first one of each rank.
  void warn(member& m, const std::string& what);
  // Ends the run with this cause unless a certain one comes first. Only the first suspicion counts.
  void suspect(const member& m, const std::string& what, int code);
  // Makes the suspicion the cause of the end, unless a certain one comes first.
  asio::awaitable<void> settle_suspicion();
  // Tells every rank that the run has ended because of rank `dead` (`nobody`: of no rank).
  void end(std::uint32_t dead, const std::string& why);

  const launch_plan& plan_;
  const launch_hooks& hooks_;
  signal_scope signal_scope_;
  interruption interruption_;

  child_starter starter_; // of ranks that are children of this process
  asio::io_context io_{1};
  asio::posix::stream_descriptor interrupted_{io_};
  std::vector<std::unique_ptr<rank_host>> hosts_;
  std::vector<member> members_;
  std::size_t connected_ = 0, unfinished_hosts_ = 0;
  all_gather all_gather_;
  stall_detector stalls_;
  bool describing_ = false; // describe_standstill() has begun

  bool ending_ = false; // end() was called
  std::optional<rank_failure> suspicion_;
  launch_result result_;
  std::exception_ptr broken_; // the first exception of a coroutine, for run()
};

} // namespace regatta

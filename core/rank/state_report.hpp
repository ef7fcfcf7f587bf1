// SPDX-License-Identifier: Apache-2.0
//
// Describes the state of a rank when the run stands still, for the coordinator: tensors that lack gradients or weights,
// and operations that have not ended. The thread that runs the strategy describes the operations at its next call of
// poll(); if that call does not come, the report says so.
#pragma once

#include "control/client.hpp"
#include "runtime/connected_transport.hpp"
#include "runtime/strategy_host.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

class state_report {
public:
  // Both must outlive this object. `transport` is that of the strategy: describe() wakes it, and poll() reads its
  // counters.
  state_report(control_client& control, connected_transport& transport) : control_(control), transport_(transport) {}

  // [main] Begin and end the use of the strategy by describe(), which before and afterwards reports nothing. Call
  // end_watch() before the strategy is destroyed.
  void watch(const strategy_host& strategy);
  void end_watch();

  // [loop] Runs one round of the strategy, and publishes on the status page that it ran and whether it made progress.
  // Waits at most 250 ms, so that the page stays up to date. Throws failure if the strategy, its transport or an
  // operation fails, and peer_failure after a round if the case is aborted.
  void poll(strategy_host& strategy, std::uint64_t spin_ns);

  // [any] Wakes the strategy and waits at most 150 ms for its answer. Returns {"lines": a text for each item, "waits":
  // the first pending operation, "no operation is open" if there is none, "" without an answer, "answers": false if a
  // thread is in strategy_host::poll() but has not answered, "loop": the id of that thread, else 0}. One call at a
  // time.
  nlohmann::json describe();

private:
  struct tensor {
    std::string name;
    std::uint64_t first, end; // in the arena
  };
  void describe_tensors(std::vector<std::string>& lines) const;
  std::vector<std::string> describe_operations(strategy_host& strategy) const; // [loop]

  control_client& control_;
  connected_transport& transport_;
  std::uint64_t seen_bytes_ = 0;       // [loop]
  std::atomic<pid_t> polling_{0};      // the thread that is in poll()
  std::atomic<bool> request_{false};   // describe() waits for that thread
  std::mutex mutex_;                   // guards all members below
  std::condition_variable answer_set_; // answer_ was set
  bool has_answer_ = false;
  std::vector<std::string> answer_;
  const strategy_host* watched_ = nullptr;
  std::vector<tensor> tensors_; // the dense ones
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Tells the coordinator what a rank is in the middle of, when the run stands still: tensors without gradients or weights
// by name, operations that have not ended. What belongs to the thread that runs the exchange is described by that
// thread, in poll(); if it does not come by, the report says so.
#pragma once

#include "control/client.hpp"
#include "rank/exchange.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

class state_report {
public:
  // `wake` ends the exchange's poll from any thread; `bytes` is what has crossed the transport so far [loop].
  state_report(control_client& control, std::function<void()> wake, std::function<std::uint64_t()> bytes);

  // From here on describe() speaks of the exchange too, until end_watch() returns: that comes before the exchange goes.
  // [main]
  void watch(const exchange& x);
  void end_watch();

  // [loop] One round of the exchange: waits for at most 250 ms, so that the coordinator learns of bytes that move and of
  // rounds that return. Throws failure as the exchange does.
  void poll(exchange& x, std::uint64_t spin_ns);

  // A line for each thing that is open, and the number of the thread that is in poll() (0: none):
  // {"lines": ["..."], "waits": "for the first of them", "answers": true, "loop": 4711}. [any], one call at a time
  nlohmann::json describe();

private:
  struct tensor {
    std::string name;
    std::uint64_t first, end; // in the arena
  };
  void describe_tensors(std::vector<std::string>& lines) const;
  std::vector<std::string> describe_exchange(exchange& x) const; // [loop]

  control_client& control_;
  std::function<void()> wake_;
  std::function<std::uint64_t()> bytes_;
  std::uint64_t seen_bytes_ = 0;     // [loop]
  std::atomic<pid_t> polling_{0};    // the thread that is in poll()
  std::atomic<bool> asked_{false};   // describe() waits for that thread
  std::mutex mutex_;                 // guards all below
  std::condition_variable answered_; // answer_ was given
  bool has_answer_ = false;
  std::vector<std::string> answer_;
  const exchange* watched_ = nullptr;
  std::vector<tensor> tensors_; // the dense ones
};

} // namespace regatta

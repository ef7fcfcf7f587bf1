// SPDX-License-Identifier: Apache-2.0
//
// Measures when a device computed, by the device's own clock. The host places timing marks in the device's streams
// without waiting and reads them once they have passed, one or two steps later.
#pragma once

#include "device/device.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace regatta {

// All functions are [compute].
class device_times {
public:
  // Nanoseconds of one step.
  struct parts {
    double forward = 0, backward = 0; // over all micro-batches
    double update = 0;                // time of the optimizer's work that follows the last backward pass
    double input = 0;                 // from the end of the last backward pass until the host had read the next batch
    // from then until the weights were there, minus updates; plus the wait for rows before the passes
    double blocked = 0;
    std::optional<double> idle; // before its passes, when the weights were there; std::nullopt: not known
  };
  using take = std::function<void(std::uint64_t step, const parts& of_step)>;
  // Times of a step's work that the host does beside the device, for a model with sparse tables. Nanoseconds, except
  // `read`.
  struct host_part {
    double update_before = 0, update_after = 0; // the optimizer's work on rows before and after the passes
    double blocked_before = 0;                  // wait for rows, minus updates
    rg_fence read = 0;                          // when it had read the next batch, on the device's clock
  };

  // `d` may be null, or a device without timing marks: then nothing is reported.
  explicit device_times(device* d) : device_(d && d->tells_time() ? d : nullptr) {}

  // Record the marks in the order in which the host enqueues the work: forward() and backward() begin the halves of a
  // pass, and pass_ends() ends it. step_ends() takes the marks of the optimizer's work and adds a mark behind
  // everything that was enqueued.
  void forward(rg_fence f) { forward_ = f; }
  void backward(rg_fence f) { backward_ = f; }
  void pass_ends(rg_fence f);
  void step_ends(std::uint64_t step, std::vector<device::span> updates, const host_part& host);
  // Returns a mark that stands for the present time on the device's clock; 0 if nothing is measured.
  rg_fence now();
  // Returns an empty vector whose capacity comes from a completed step.
  std::vector<device::span> spare() { return std::exchange(spare_, {}); }
  // Calls `f` for every step that the device has completed.
  void collect(const take& f);
  // Stops measuring idle time across the next gap, because an evaluation lies in between.
  void pause() { last_ = 0; }

private:
  struct pass {
    rg_fence forward, backward, end;
  };
  struct step_end {
    std::uint64_t step;
    rg_fence ready;
    std::vector<device::span> updates;
    host_part host;
  };
  struct entry { // holds one of the two
    std::optional<pass> a_pass;
    std::optional<step_end> an_end;
  };
  void add(const pass& p);
  parts finish(const step_end& e);

  device* device_;
  rg_fence forward_ = 0, backward_ = 0;
  std::deque<entry> under_way_;
  parts now_;
  rg_fence end_ = 0; // of the last backward pass
  bool idle_known_ = true;
  std::vector<device::span> spare_;
  rg_fence last_ = 0; // since when the device could have begun a pass; 0: not known
};

} // namespace regatta

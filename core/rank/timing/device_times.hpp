// SPDX-License-Identifier: Apache-2.0
//
// Measures when a device computed, by the device's own clock. Timing marks are fences with a time (device::mark). They
// are placed in the device's streams without waiting, and read once they have passed, one or two steps later.
#pragma once

#include "device/device.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace regatta {

// All functions are [compute]. A mark of 0 means that there is none.
class device_times {
public:
  // Nanoseconds of one step.
  struct parts {
    double forward = 0, backward = 0; // over all micro-batches
    double update = 0;                // the optimizer's work after the last backward pass, and host_part's updates
    double input = 0; // from the end of the last backward pass until host_part::read; 0 if that is not set
    // From the end of `input` until all work of the step had passed, minus updates; plus host_part::blocked_before.
    double blocked = 0;
    // The device waited for the host before a pass, although its weights had arrived; std::nullopt: not known.
    std::optional<double> idle;
  };
  using take = std::function<void(std::uint64_t step, const parts& of_step)>;
  // Times of the work that the host does in a step of a model with sparse tables; all 0 for other models. Nanoseconds,
  // except `read`.
  struct host_part {
    double update_before = 0, update_after = 0; // the optimizer's work on rows before and after the passes
    double blocked_before = 0;                  // wait for rows before the passes, minus updates
    rg_fence read = 0;                          // mark from now(): the host has read the next step's batch
  };

  // `d` may be null, or a device without timing marks: then nothing is reported. It must outlive this object.
  explicit device_times(device* d) : device_(d && d->has_timing_marks() ? d : nullptr) {}

  // Call forward(), backward() and pass_ends() in this order for each micro-batch, with the marks of
  // rg_device_hooks.phase and late_loss. A pass that lacks one of its marks is not measured. step_ends() ends the step:
  // it takes the spans from strategy_host::collect_update_spans() and places a mark behind all work in stream
  // `computing`.
  void forward(rg_fence f) { forward_ = f; }
  void backward(rg_fence f) { backward_ = f; }
  void pass_ends(rg_fence f);
  void step_ends(std::uint64_t step, std::vector<device::span> updates, const host_part& host);
  // Returns a mark of the present time: it passes at once, not after the enqueued work. Requires that stream `watching`
  // has no pending work. 0 if nothing is measured.
  rg_fence now();
  // Returns an empty vector for the next step_ends(); it reuses the memory of a collected step.
  std::vector<device::span> spare() { return std::exchange(spare_, {}); }
  // Calls `f` once for every step that the device has completed since the last call, in order, without waiting. Leaves
  // out all steps until a first pass was measured.
  void collect(const take& f);
  // Call it after collect() when the device has completed everything: the time until the next pass, such as an
  // evaluation, does not count as idle. The next step's `idle` is std::nullopt.
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

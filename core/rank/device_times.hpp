// SPDX-License-Identifier: Apache-2.0
//
// What a device did when, by its own clock, in steps that the host only asks for and does not wait for: points in its
// streams, looked at once they have passed, a step or two later.
#pragma once

#include "device/device.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace regatta {

// All [compute].
class device_times {
public:
  // Nanoseconds of one step.
  struct parts {
    double forward = 0, backward = 0; // over all micro-batches
    double update = 0;                // of the optimiser's work, what came after the last backward pass
    double input = 0;                 // after it, until the next batch was read
    double blocked = 0;         // after both until the weights were there, not updating; before, for rows of tables
    std::optional<double> idle; // before its passes, with the weights there; nothing: not known
  };
  using take = std::function<void(std::uint64_t step, const parts& of_step)>;
  // What the host did in a step that it shares with the device, of a model with sparse tables: nanoseconds of its own.
  struct host_part {
    double update_before = 0, update_after = 0; // the optimiser's work on rows, before the passes and after them
    double blocked_before = 0;                  // waited for rows, while not updating
    rg_fence read = 0;                          // when it had read the next batch
  };

  // Null, or a device that cannot tell: nothing is ever told.
  explicit device_times(device* d) : device_(d && d->tells_time() ? d : nullptr) {}

  // In the order in which the host asks for it: a pass begins its forward and its backward half, and ends; then the
  // step does, with the beginnings and ends of the optimiser's work, and a point behind all that it asked for.
  void forward(rg_fence f) { forward_ = f; }
  void backward(rg_fence f) { backward_ = f; }
  void pass_ends(rg_fence f);
  void step_ends(std::uint64_t step, std::vector<device::span> updates, const host_part& host);
  // When the host is here, on the device's clock; 0: it tells nothing.
  rg_fence now();
  // An empty vector with room, of a step that is over.
  std::vector<device::span> spare() { return std::exchange(spare_, {}); }
  // Tells of the steps that are over by now.
  void collect(const take& f);
  // What comes next does not follow what was: an evaluation is in between.
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
  struct entry { // one of the two
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
  rg_fence last_ = 0; // since when the device might have begun a pass; 0: not known
};

} // namespace regatta

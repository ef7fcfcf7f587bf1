// SPDX-License-Identifier: Apache-2.0
//
// The trace of a simulated rank: the events of its compute thread, under the names that a real rank gives them
// (rank/timing/step_times.hpp, rank/model_hooks.hpp). The engine's strategy_host records operations and messages.
#pragma once

#include "trace/recorder.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace regatta {

struct simulated_step;

// The steps of a simulation of which events are recorded: `count` from `first` on.
struct steps_to_trace {
  std::vector<trace_recorder*> recorders; // by rank; they outlive the simulation
  std::vector<bool> is_worker;            // by rank; others record from when a worker begins step `first`
  std::vector<std::string> tensors;       // names of the model's dense tensors
  std::uint64_t first = 0, count = 0;
};

class step_trace {
public:
  // Borrows `steps`; null: nothing is recorded.
  step_trace(const steps_to_trace* steps, std::uint32_t rank);
  trace_recorder* recorder() const { return recorder_; }

  // A worker's events, in the order of a step; `now` is the virtual time. Each does nothing if the step is not traced.
  void begin_step(std::uint64_t step);
  void input(std::uint64_t begin, std::uint64_t now);
  void waits(std::size_t tensor, std::uint64_t now); // for the weights of `tensor`; may be called again
  void reads(std::size_t tensor, std::uint64_t now); // the weights of `tensor` have arrived
  void ready(std::size_t tensor, std::uint64_t now); // its gradients are
  // Computing since `begin`, which makes the gradients of `tensor` ready, or in the forward pass uses its weights.
  void layer(std::size_t tensor, bool forward, std::uint64_t begin, std::uint64_t now);
  void end_step(std::uint64_t step, const simulated_step& times);

private:
  bool on() const { return recorder_ && recorder_->on(); }
  void span(const char* name, const char* category, std::uint64_t begin, std::uint64_t end);

  const steps_to_trace* steps_;
  trace_recorder* recorder_;
  std::vector<const char*> layers_, needs_, ready_; // names by tensor
  std::uint64_t waits_since_ = UINT64_MAX;          // UINT64_MAX: it does not wait
};

} // namespace regatta

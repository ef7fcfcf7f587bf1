// SPDX-License-Identifier: Apache-2.0
#include "step_trace.hpp"

#include "simulation.hpp"

#include <utility>

namespace regatta {

step_trace::step_trace(const steps_to_trace* steps, std::uint32_t rank)
    : steps_(steps), recorder_(steps ? steps->recorders.at(rank) : nullptr) {
  if (!steps || !steps->is_worker.at(rank)) return;
  for (const std::string& name : steps->tensors) {
    layers_.push_back(recorder_->text(name));
    needs_.push_back(recorder_->text("need " + name));
    ready_.push_back(recorder_->text("ready " + name));
  }
}

void step_trace::begin_step(std::uint64_t step) {
  if (!recorder_) return;
  recorder_->record(step >= steps_->first && step - steps_->first < steps_->count);
  if (!on()) return;
  for (std::size_t rank = 0; rank < steps_->recorders.size(); ++rank)
    if (!steps_->is_worker[rank]) steps_->recorders[rank]->record(true);
}

void step_trace::span(const char* name, const char* category, std::uint64_t begin, std::uint64_t end) {
  recorder_->span(event_origin::compute, name, category, begin, end);
}

void step_trace::input(std::uint64_t begin, std::uint64_t now) {
  if (on()) span("input", "phase", begin, now);
}

void step_trace::waits(std::size_t tensor, std::uint64_t now) {
  if (!on() || waits_since_ != UINT64_MAX) return;
  waits_since_ = now;
  recorder_->instant(event_origin::compute, needs_.at(tensor), "hook", now);
}

void step_trace::reads(std::size_t tensor, std::uint64_t now) {
  if (!on()) return;
  if (const std::uint64_t since = std::exchange(waits_since_, UINT64_MAX); since != UINT64_MAX)
    span(needs_.at(tensor), "wait", since, now);
  else
    recorder_->instant(event_origin::compute, needs_.at(tensor), "hook", now);
}

void step_trace::ready(std::size_t tensor, std::uint64_t now) {
  if (on()) recorder_->instant(event_origin::compute, ready_.at(tensor), "hook", now);
}

void step_trace::layer(std::size_t tensor, bool forward, std::uint64_t begin, std::uint64_t now) {
  if (on()) span(layers_.at(tensor), forward ? "forward" : "backward", begin, now);
}

void step_trace::end_step(std::uint64_t step, const simulated_step& times) {
  if (!on()) return;
  span("forward pass", "phase", times.forward, times.backward);
  span("backward pass", "phase", times.backward, times.computed);
  span("exchange", "wait", times.computed, times.end);
  recorder_->span(event_origin::compute, "step", "step", times.begin, times.end, "step", step);
}

} // namespace regatta

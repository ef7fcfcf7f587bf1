// SPDX-License-Identifier: Apache-2.0
#include "calibrate/traced_times.hpp"

#include "base/failure.hpp"
#include "results/statistics.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace regatta {
namespace {

struct step_events {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t forward = 0, backward = 0, after = 0;       // begin of the passes, end of the backward pass; 0: unknown
  std::vector<std::pair<std::uint64_t, std::size_t>> needs; // time and tensor
  std::vector<std::uint64_t> ready;                         // by tensor; 0: unknown
};

std::vector<step_events> steps_of(const rank_trace& trace, std::size_t tensors) {
  std::vector<step_events> steps;
  for (const trace_event& e : trace.events)
    if (e.kind == event_kind::span && trace.text(e.name) == "step")
      steps.push_back({e.begin, e.end, 0, 0, 0, {}, std::vector<std::uint64_t>(tensors)});
  std::ranges::sort(steps, {}, &step_events::begin);
  return steps;
}

step_events* step_at(std::vector<step_events>& steps, std::uint64_t time) {
  const auto next = std::ranges::upper_bound(steps, time, {}, &step_events::begin);
  if (next == steps.begin() || time > std::prev(next)->end) return nullptr;
  return &*std::prev(next);
}

void add_event(std::vector<step_events>& steps, const rank_trace& trace, const trace_event& e,
               const std::map<std::string, std::size_t>& known) {
  step_events* const step = step_at(steps, e.begin);
  const std::string& name = trace.text(e.name);
  if (!step || e.origin != event_origin::compute) return;
  if (name == "forward pass") {
    step->forward = e.begin;
  } else if (name == "backward pass") {
    step->backward = e.begin;
    step->after = e.end;
  } else if (e.kind == event_kind::instant) {
    const std::size_t blank = name.find(' ');
    if (blank == std::string::npos) return;
    const auto tensor = known.find(name.substr(blank + 1));
    if (tensor == known.end()) return;
    if (name.starts_with("need ")) step->needs.emplace_back(e.begin, tensor->second);
    if (name.starts_with("ready ")) step->ready[tensor->second] = e.begin;
  }
}

} // namespace

traced_times times_in_trace(const rank_trace& trace, const std::vector<std::string>& names) {
  std::map<std::string, std::size_t> known;
  for (const std::string& name : names) known.emplace(name, known.size());
  std::vector<step_events> steps = steps_of(trace, names.size());
  for (const trace_event& e : trace.events) add_event(steps, trace, e, known);
  std::vector<std::vector<double>> forward(names.size()), backward(names.size());
  std::vector<double> after;
  for (step_events& s : steps) {
    if (!s.forward || !s.backward) continue;
    if (names.empty()) { // sparse tables only: their gradients are final when the passes end
      after.push_back(static_cast<double>(s.after - std::min(s.forward, s.after)));
      continue;
    }
    if (s.ready.empty() || !s.ready.back()) continue;
    // A model may report the last of several tensors only: those before it are ready by then.
    for (std::size_t t = s.ready.size() - 1; t-- > 0;)
      if (!s.ready[t]) s.ready[t] = s.ready[t + 1];
    std::ranges::sort(s.needs);
    std::vector<double> of_step(names.size());
    // The time before the first need is that of reading the first tensor.
    for (std::size_t i = 0; i < s.needs.size(); ++i) {
      const std::uint64_t from = i == 0 ? s.forward : s.needs[i].first;
      const std::uint64_t to = i + 1 < s.needs.size() ? s.needs[i + 1].first : s.backward;
      of_step[s.needs[i].second] += static_cast<double>(to - std::min(from, to));
    }
    if (s.needs.empty()) of_step.back() = static_cast<double>(s.backward - s.forward);
    std::uint64_t last = s.backward;
    for (std::size_t t = 0; t < names.size(); ++t) {
      forward[t].push_back(of_step[t]);
      backward[t].push_back(static_cast<double>(s.ready[t] - std::min(last, s.ready[t])));
      last = std::max(last, s.ready[t]);
    }
    after.push_back(static_cast<double>(s.after - std::min(last, s.after)));
  }
  if (after.empty())
    throw failure(exit_code::run, fmt::format("the trace of the baseline holds no step with the passes and all {} "
                                              "gradients: the model must report its backward pass",
                                              names.size()));
  traced_times out;
  out.steps = after.size();
  out.after = median(after).value_or(0);
  for (std::size_t t = 0; t < names.size(); ++t) {
    std::vector<double> both;
    for (std::size_t i = 0; i < forward[t].size(); ++i) both.push_back(forward[t][i] + backward[t][i]);
    out.tensors.push_back({names[t], median(forward[t]).value_or(0), median(backward[t]).value_or(0), variation(both)});
  }
  return out;
}

} // namespace regatta

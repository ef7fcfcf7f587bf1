// SPDX-License-Identifier: Apache-2.0
//
// Events of ranks that never ran.
#pragma once

#include "timeline/perfetto.hpp"
#include "timeline/rank_trace.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace regatta::test {

struct synthetic_rank : rank_trace {
  explicit synthetic_rank(std::uint32_t number, const std::string& of = "worker 0") {
    rank = number;
    role = of;
    clock = "one";
  }
  std::uint32_t index_of(const std::string& text) {
    const auto at = std::find(strings.begin(), strings.end(), text) - strings.begin();
    if (at == static_cast<std::ptrdiff_t>(strings.size())) strings.push_back(text);
    return static_cast<std::uint32_t>(at);
  }
  trace_event& add(event_kind kind, event_origin origin, const std::string& name, const std::string& category,
                   std::uint64_t begin, std::uint64_t end, const std::string& number_name = "",
                   std::uint64_t number = 0) {
    trace_event e;
    e.kind = kind;
    e.origin = origin;
    e.name = index_of(name);
    e.category = index_of(category);
    e.number_name = index_of(number_name);
    e.number = number;
    e.begin = begin;
    e.end = end;
    return events.emplace_back(e);
  }
  trace_event& compute(const std::string& name, const std::string& category, std::uint64_t begin, std::uint64_t end) {
    return add(event_kind::span, event_origin::compute, name, category, begin, end);
  }
  void step(std::uint64_t number, std::uint64_t begin, std::uint64_t end) {
    add(event_kind::span, event_origin::compute, "step", "step", begin, end, "step", number);
  }
  trace_event& layer(const std::string& name, const std::string& pass, std::uint64_t begin, std::uint64_t end) {
    return add(event_kind::span, event_origin::executor, name, pass, begin, end);
  }
  trace_event& operation(const std::string& name, std::uint64_t begin, std::uint64_t end) {
    return add(event_kind::span, event_origin::loop, name, "operation", begin, end);
  }
  trace_event& function(const std::string& name, std::uint64_t begin, std::uint64_t end) {
    return add(event_kind::span, event_origin::functions, name, "operation", begin, end);
  }
  void bucket(std::uint64_t number, std::uint64_t at) {
    add(event_kind::instant, event_origin::loop, "bucket ready", "hook", at, at, "bucket", number);
  }
  trace_event& message(event_kind kind, std::uint32_t peer, std::uint64_t sequence, std::uint64_t begin,
                       std::uint64_t end, std::uint32_t bucket = no_bucket, std::uint32_t lane = 0) {
    trace_event& e = add(kind, event_origin::messages, kind == event_kind::send ? "send" : "receive", "message", begin,
                         end, "bytes", 100);
    e.peer = peer;
    e.lane = lane;
    e.sequence = sequence;
    e.bucket = bucket;
    return e;
  }
};

// Returns the trace file of a step of two workers, which exchange eight buckets.
inline std::string two_workers_trace() {
  synthetic_rank ranks[] = {synthetic_rank(0, "worker 0 + server 0"), synthetic_rank(1, "worker 1")};
  for (std::uint32_t r = 0; r < 2; ++r) {
    ranks[r].step(7, 1000 * r, 900'000);
    for (std::uint64_t l = 0; l < 16; ++l)
      ranks[r].layer("conv" + std::to_string(l), l < 8 ? "forward" : "backward", 1000 + 40'000 * l, 40'000 * (l + 1));
    for (std::uint32_t b = 0; b < 8; ++b) {
      const std::uint64_t ready = 40'000 * (b + 9);
      ranks[r].bucket(b, ready);
      ranks[r].message(event_kind::send, 1 - r, b, ready, ready + 90'000, b);
      ranks[r].message(event_kind::receive, 1 - r, b, ready, ready + 100'000, b);
      ranks[r].operation("apply", ready + 100'000, ready + 120'000);
    }
    ranks[r].compute("exchange", "wait", 640'000, 890'000);
  }
  return perfetto_file({ranks[0], ranks[1]});
}

} // namespace regatta::test

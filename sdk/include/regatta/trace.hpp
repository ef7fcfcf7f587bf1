// SPDX-License-Identifier: Apache-2.0
//
// rg::tracer, through which an instance records spans for a trace (ext/trace.h). All functions but text() are [any]
// and lock-free.
#pragma once

#include <regatta/ext/trace.h>
#include <regatta/plugin.hpp>

namespace rg {

class tracer {
public:
  // `host`, which may be null, must outlive this object. Without the extension nothing is recorded.
  explicit tracer(const rg_host* host = nullptr) {
    const void* table = host && host->extension ? host->extension(host->context, RG_EXT_TRACE) : nullptr;
    if (table) trace_ = copy_versioned(*static_cast<const rg_trace*>(table));
  }

  // Returns whether spans are recorded now. Only then read the clock for one.
  bool on() const noexcept { return trace_.on && __atomic_load_n(trace_.on, __ATOMIC_RELAXED); }

  // [main] Returns a copy of `text` for spans, which lives as long as the trace; without the extension an empty text.
  const char* text(const std::string& text) const {
    return trace_.text ? trace_.text(trace_.context, text.c_str()) : "";
  }

  // Describes a span. The texts are literals or come from text(). `track` is a row of the trace, from 0, numbered by
  // the instance; two spans of a track are disjoint, or one contains the other. `number_name` says what `number`
  // counts; null: there is no number.
  struct what {
    const char *name, *category;
    std::uint32_t track = 0;
    const char* number_name = nullptr;
    std::uint64_t number = 0;
  };
  // Records a span that has ended. Requires that on() returned true before the span began, and begin_ns <= end_ns.
  // Times are in ns: a strategy takes them from its host's now(), other plugins from CLOCK_MONOTONIC.
  void span(const what& w, std::uint64_t begin_ns, std::uint64_t end_ns) const noexcept {
    auto s = make_versioned<rg_span>();
    s.track = w.track;
    s.name = w.name;
    s.category = w.category;
    s.begin_ns = begin_ns;
    s.end_ns = end_ns;
    s.number_name = w.number_name;
    s.number = w.number;
    trace_.span(trace_.context, &s);
  }

private:
  rg_trace trace_{};
};

} // namespace rg

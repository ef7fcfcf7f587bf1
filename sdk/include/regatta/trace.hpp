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

  // [main] Returns a copy of `text` for spans; without the extension an empty text.
  const char* text(const std::string& text) const {
    return trace_.text ? trace_.text(trace_.context, text.c_str()) : "";
  }

  // Records a span. Requires that on() has returned true. The texts are literals or come from text(). rg_span
  // explains `track`.
  struct what {
    const char *name, *category;
    std::uint32_t track = 0;
    const char* number_name = nullptr;
    std::uint64_t number = 0;
  };
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

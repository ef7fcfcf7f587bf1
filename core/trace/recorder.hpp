// SPDX-License-Identifier: Apache-2.0
//
// Records the events of this rank in memory that is allocated in advance. Without measure.trace there is no recorder,
// and its users test a null pointer.
#pragma once

#include "trace/event.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>
#include <regatta/ext/trace.h>

namespace regatta {

class trace_recorder {
public:
  // [main] Allocates memory for `capacity` events and touches it.
  explicit trace_recorder(std::size_t capacity);
  trace_recorder(const trace_recorder&) = delete;
  trace_recorder& operator=(const trace_recorder&) = delete;

  // Returns the events that one rank of `ranks` may keep: 131,072, or with more than 7 ranks a million divided by their
  // number, so that the file of all ranks is smaller than 100 MB.
  static std::size_t capacity_for(std::uint32_t ranks);

  // [any] Begins and ends recording; at first nothing is recorded. Lock-free.
  void record(bool on) noexcept { __atomic_store_n(&on_, on ? 1U : 0U, __ATOMIC_RELAXED); }
  bool on() const noexcept { return __atomic_load_n(&on_, __ATOMIC_RELAXED) != 0; }

  // [any] Keeps an event with these texts, which live as long as this object: literals, or from text(). Does nothing
  // if on() is false; drops and counts the event if the memory is full. Allocates nothing, lock-free.
  void add(trace_event e, const char* name, const char* category, const char* number_name = "") noexcept;
  // As add(), for a span, and for an instant. Times are as in trace_event; requires begin <= end.
  void span(event_origin origin, const char* name, const char* category, std::uint64_t begin, std::uint64_t end,
            const char* number_name = "", std::uint64_t number = 0) noexcept;
  void instant(event_origin origin, const char* name, const char* category, std::uint64_t at,
               const char* number_name = "", std::uint64_t number = 0) noexcept;

  // [main] Returns a copy of `text` that lives as long as this object.
  const char* text(std::string_view text) { return texts_.emplace_back(text).c_str(); }

  // [main] Returns the table of RG_EXT_TRACE for hosts of this origin. Valid as long as this object.
  const rg_trace* extension(event_origin origin) const { return &tables_[static_cast<std::size_t>(origin)].table; }

  // [main] Returns the events for rank_trace_from() of timeline/rank_trace.hpp, which the coordinator calls. Ends
  // recording. Plugins whose literals were recorded must still be loaded.
  nlohmann::json take(std::uint32_t rank, const std::string& role);

private:
  struct slot {
    trace_event event;
    std::array<const char*, 3> texts; // name, category, number_name
    std::atomic<bool> complete;
  };
  struct host_table {
    trace_recorder* recorder;
    event_origin origin;
    rg_trace table;
  };

  std::uint32_t on_ = 0; // atomic; plugins read it
  std::size_t capacity_;
  std::unique_ptr<slot[]> slots_;
  std::atomic<std::size_t> next_{0}; // the number of events, those without a slot included
  std::deque<std::string> texts_;
  std::array<host_table, origins> tables_;
};

} // namespace regatta

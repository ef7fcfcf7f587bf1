// SPDX-License-Identifier: Apache-2.0
//
// The virtual clock in ns and its events. Events of equal time come in the order in which they were scheduled. Nothing
// is allocated once the largest number of simultaneous events has been reached.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace regatta {

constexpr std::uint64_t never = UINT64_MAX; // the time of no event

// The caller that schedules an event gives it its meaning.
struct event {
  std::uint64_t time, order;
  std::uint32_t kind, what;
};

class event_queue {
public:
  std::uint64_t now() const { return now_; }
  // Schedules an event for `time`, which is now or later.
  void at(std::uint64_t time, std::uint32_t kind, std::uint32_t what) {
    heap_.push_back({time, order_++, kind, what});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  // As at(now() + delay). Events with the same delay come in the order in which they are scheduled, so the first few
  // delays that are used have a queue each, which is cheaper than the heap.
  void after(std::uint64_t delay, std::uint32_t kind, std::uint32_t what) {
    for (line& l : lines_)
      if (l.delay == delay) return l.push({now_ + delay, order_++, kind, what});
    if (lines_.size() == most_lines) return at(now_ + delay, kind, what);
    lines_.push_back({delay, {}, 0});
    lines_.back().push({now_ + delay, order_++, kind, what});
  }
  // Returns the time of the first event; never: there is none.
  std::uint64_t next() const {
    const event* const e = first();
    return e ? e->time : never;
  }
  // Removes and returns the first event; its time becomes now(). Requires that there is one.
  event pop() {
    const event e = *first();
    now_ = std::max(now_, e.time);
    for (line& l : lines_)
      if (!l.empty() && l.front().order == e.order) {
        l.pop();
        return e;
      }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    heap_.pop_back();
    return e;
  }
  // Sets the clock forward. Requires that no event is earlier than `t`.
  void advance(std::uint64_t t) { now_ = std::max(now_, t); }

private:
  static constexpr std::size_t most_lines = 8;
  static bool later(const event& a, const event& b) { return a.time != b.time ? a.time > b.time : a.order > b.order; }
  struct line {
    std::uint64_t delay;
    std::vector<event> events;
    std::size_t head;
    bool empty() const { return head == events.size(); }
    const event& front() const { return events[head]; }
    void push(const event& e) {
      if (head > 64 && head > events.size() / 2) { // at most one move for each event
        events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(head));
        head = 0;
      }
      events.push_back(e);
    }
    void pop() { ++head; }
  };
  const event* first() const {
    const event* best = heap_.empty() ? nullptr : &heap_.front();
    for (const line& l : lines_)
      if (!l.empty() && (!best || later(*best, l.front()))) best = &l.front();
    return best;
  }

  std::uint64_t now_ = 0, order_ = 0;
  std::vector<event> heap_;
  std::vector<line> lines_;
};

} // namespace regatta

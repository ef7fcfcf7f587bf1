// SPDX-License-Identifier: Apache-2.0
//
// Order of receives, as RG_CAP_ORDERED_RECEIVES promises: those into overlapping bytes take effect in the order in
// which they were posted, whatever their peers and lanes, because floating-point sums depend on the order. So a receive
// starts only when no earlier receive that overlaps it is outstanding. A receive waits for earlier ones only, which
// rules out deadlocks. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace transports {

// An Owner, which may own several receives, is notified when one of them may start that could not before.
template <class Owner> class posting_order {
public:
  using ticket = std::uint32_t;

  // Registers a receive into [begin, end), after all earlier ones. `owner` must not be null, and must live until
  // leave(). The ticket is valid until leave(), after which it may be given out again.
  ticket enter(const std::byte* begin, const std::byte* end, Owner* owner) {
    if (free_.empty()) {
      free_.reserve(entries_.size() + 1);
      free_.push_back(static_cast<ticket>(entries_.size()));
      entries_.emplace_back();
    }
    const ticket t = free_.back();
    free_.pop_back();
    entry& mine = entries_[t];
    mine = {.begin = begin, .end = end, .posted = ++posted_, .owner = owner};
    for (const entry& e : entries_) mine.waits_for += e.owner && overlap(e, mine) && e.posted < mine.posted;
    waiting_ += mine.waits_for > 0;
    return t;
  }

  // Returns whether no earlier receive is in the way of this one. Once true, it stays true.
  bool may_start(ticket t) const { return entries_[t].waits_for == 0; }

  // Unregisters a receive that has ended or will never happen. Calls released(owner) for each receive that had to wait
  // and may start now; released() must not call enter() or leave().
  template <class F> void leave(ticket t, F released) {
    const entry mine = entries_[t];
    entries_[t].owner = nullptr;
    free_.push_back(t);
    waiting_ -= mine.waits_for > 0;
    if (waiting_ == 0) return;
    for (entry& e : entries_)
      if (e.owner && e.posted > mine.posted && overlap(e, mine) && --e.waits_for == 0) {
        --waiting_;
        released(e.owner);
      }
  }

private:
  struct entry {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    std::uint64_t posted = 0;
    Owner* owner = nullptr; // null: free
    std::uint32_t waits_for = 0;
  };
  static bool overlap(const entry& a, const entry& b) { return a.begin < b.end && b.begin < a.end; }

  std::vector<entry> entries_;
  std::vector<ticket> free_;
  std::uint64_t posted_ = 0;
  std::size_t waiting_ = 0;
};

} // namespace transports

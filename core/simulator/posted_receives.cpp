// SPDX-License-Identifier: Apache-2.0
#include "posted_receives.hpp"

#include <algorithm>
#include <tuple>

namespace regatta {

void posted_receives::add(slab<receive>& all, std::uint32_t r) {
  receive& x = all[r];
  if (!x.region || !x.bytes) return; // writes nothing
  const auto key = [](const auto& t) { return std::tie(t.region, t.offset, t.bytes); };
  longest_ = std::max(longest_, x.bytes);
  // The targets that may overlap: none is longer than longest_.
  const std::uint64_t from = x.offset - std::min(x.offset, longest_);
  auto t = std::ranges::lower_bound(targets_, std::pair(x.region, from), {},
                                    [](const target& y) { return std::pair(y.region, y.offset); });
  auto own = targets_.end();
  for (; t != targets_.end() && t->region == x.region && t->offset < x.offset + x.bytes; ++t) {
    if (key(*t) == key(x)) own = t;
    if (t->head == nothing || t->offset + t->bytes <= x.offset) continue;
    // The last one of a target ends after all others there.
    ++x.waits_for;
    if (t == own) {
      all[t->tail].successor = r;
    } else {
      const std::uint32_t o = others_.take();
      others_[o].receive = r;
      others_[o].next = all[t->tail].others;
      all[t->tail].others = o;
    }
    if (x.bytes_in && !x.adds)
      for (std::uint32_t e = t->head; e != nothing && e != r; e = all[e].successor)
        if (all[e].bytes_in) x.bytes_in->over.push_back(all[e].bytes_in->content);
  }
  if (own != targets_.end()) {
    if (own->head == nothing) {
      --unused_;
      own->head = r;
    }
    own->tail = r;
    x.target = static_cast<std::uint32_t>(own - targets_.begin());
    return;
  }
  if (unused_ > 2 && unused_ > targets_.size() / 2) {
    std::erase_if(targets_, [](const target& y) { return y.head == nothing; });
    unused_ = 0;
  }
  const auto place = std::ranges::upper_bound(targets_, key(x), {}, key);
  x.target = static_cast<std::uint32_t>(place - targets_.begin());
  targets_.insert(place, {x.region, x.offset, x.bytes, r, r});
}

std::size_t posted_receives::find(const receive& x) const {
  const auto is_it = [&](const target& t) {
    return t.region == x.region && t.offset == x.offset && t.bytes == x.bytes;
  };
  if (x.target < targets_.size() && is_it(targets_[x.target])) return x.target; // targets rarely move
  const auto t = std::ranges::lower_bound(targets_, std::tie(x.region, x.offset, x.bytes), {},
                                          [](const target& y) { return std::tie(y.region, y.offset, y.bytes); });
  return static_cast<std::size_t>(t - targets_.begin());
}

void posted_receives::remove(slab<receive>& all, std::uint32_t r, std::vector<std::uint32_t>& free) {
  receive& x = all[r];
  if (!x.region || !x.bytes) return;
  target& t = targets_[find(x)];
  if ((t.head = x.successor) == nothing) ++unused_;
  const auto released = [&](std::uint32_t later) {
    if (--all[later].waits_for == 0) free.push_back(later);
  };
  if (x.successor != nothing) released(x.successor);
  while (x.others != nothing) {
    const std::uint32_t o = x.others;
    x.others = others_[o].next;
    released(others_[o].receive);
    others_.give(o);
  }
}

} // namespace regatta

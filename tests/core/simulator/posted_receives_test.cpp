// SPDX-License-Identifier: Apache-2.0
#include "simulator/posted_receives.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace regatta;

namespace {

struct interval {
  std::uint32_t region;
  std::uint64_t offset, bytes;
};

bool overlap(const interval& a, const interval& b) {
  return a.region && a.region == b.region && a.bytes && b.bytes && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

} // namespace

// Compared with the plain rule: a receive may end once no earlier one that overlaps it is outstanding.
TEST_CASE("receives into the same bytes end in posting order, others in any") {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int run = 0; run < 200; ++run) {
    slab<receive> all;
    posted_receives posted;
    std::vector<std::pair<std::uint32_t, interval>> outstanding; // in posting order
    for (int step = 0; step < 300; ++step) {
      if (below(2) || outstanding.empty()) {
        const bool piece = below(2);
        const interval x{below(3), piece ? 16 * below(6) : below(90), piece ? 16 : below(60)};
        const std::uint32_t r = all.take();
        all[r].region = x.region;
        all[r].offset = x.offset;
        all[r].bytes = x.bytes;
        posted.add(all, r);
        outstanding.emplace_back(r, x);
      } else {
        const std::size_t k = below(static_cast<std::uint32_t>(outstanding.size()));
        if (all[outstanding[k].first].waits_for) continue;
        std::vector<std::uint32_t> freed;
        posted.remove(all, outstanding[k].first, freed);
        all.give(outstanding[k].first);
        outstanding.erase(outstanding.begin() + static_cast<std::ptrdiff_t>(k));
        for (const std::uint32_t f : freed) CHECK(all[f].waits_for == 0);
      }
      for (std::size_t k = 0; k < outstanding.size(); ++k) {
        const bool waits = std::any_of(outstanding.begin(), outstanding.begin() + static_cast<std::ptrdiff_t>(k),
                                       [&](const auto& e) { return overlap(e.second, outstanding[k].second); });
        REQUIRE((all[outstanding[k].first].waits_for > 0) == waits);
      }
    }
  }
}

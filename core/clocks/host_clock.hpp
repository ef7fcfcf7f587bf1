// SPDX-License-Identifier: Apache-2.0
//
// The offset between the clocks of two hosts, from questions that one answers with its own time (Cristian 1989,
// "Probabilistic clock synchronization"): the answer was given at some time between question and receipt, so the offset
// is known to half of the round trip. Clocks drift slowly, so an exchange also bounds the offset at other times. The
// offset at a time lies within the bounds of all exchanges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "clocks/clock_course.hpp"

namespace regatta {

class host_clock {
public:
  // Adds an exchange: the question left this host at `sent`, and the answer with the time `there` of the other host
  // came at `received`; `sent` and `received` are of this host's clock, all in nanoseconds. Exchanges must be added in
  // the order of `received`; one that was received before it was sent is ignored.
  void add(std::int64_t sent, std::int64_t received, std::int64_t there);

  // Returns the other host's clock against this one's, the reference, at any time `time` of this host's clock;
  // std::nullopt if no exchange was added.
  std::optional<clock_estimate> at(std::int64_t time) const;

  // Returns the same over the time of all exchanges: at most 64 points, at times of the other host's clock; without an
  // exchange none.
  clock_course course() const;

  void clear() { *this = {}; }

private:
  static constexpr std::size_t most_exchanges = 256, most_points = 64;
  static constexpr std::int64_t shortest_interval = 1'000'000'000;
  struct exchange {
    std::int64_t sent, received, there;

    double half() const { return static_cast<double>(received - sent) / 2; }
    double middle() const { return static_cast<double>(sent) + half(); }
  };
  // Adds an exchange, or replaces that of its interval if it is better.
  void keep(const exchange& e);

  std::vector<exchange> exchanges_;
  std::int64_t interval_ = 0; // in a long run the best exchange of each interval of so many ns is kept; 0: all are
};

} // namespace regatta

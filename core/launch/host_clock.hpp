// SPDX-License-Identifier: Apache-2.0
//
// The offset between the clocks of two hosts, from messages that each answers with its own time (Cristian 1989,
// "Probabilistic clock synchronization"): the answer was given at some time between question and receipt, so the offset
// is known to half of the round trip. The shortest round trips know it best.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace regatta {

class host_clock {
public:
  struct estimate {
    double offset_ns = 0;      // the other host's rg::steady_ns() minus this one's
    double uncertainty_ns = 0; // the offset lies within +- this
  };

  // Adds an exchange: the question left this host at `sent`, and the answer with the time `there` of the other host came
  // at `received`; `sent` and `received` are of this host's clock.
  void add(std::int64_t sent, std::int64_t received, std::int64_t there) {
    if (received < sent) return;
    exchanges_.push_back({sent, received, there});
    if (exchanges_.size() > kept) exchanges_.pop_front();
  }

  // Returns the offset at time `at` of this host's clock; std::nullopt before the first exchange. Clocks drift apart by
  // at most 100 ppm: an exchange counts with its half round trip plus the drift since then, and the least sum wins.
  std::optional<estimate> at(std::int64_t time) const {
    std::optional<estimate> best;
    for (const exchange& e : exchanges_) {
      const double half = static_cast<double>(e.received - e.sent) / 2;
      const double middle = static_cast<double>(e.sent) + half;
      const double age = static_cast<double>(time) - middle;
      const estimate mine{static_cast<double>(e.there) - middle, half + drift * (age < 0 ? -age : age)};
      if (!best || mine.uncertainty_ns < best->uncertainty_ns) best = mine;
    }
    return best;
  }

private:
  static constexpr std::size_t kept = 256;
  static constexpr double drift = 1e-4;
  struct exchange {
    std::int64_t sent, received, there;
  };
  std::deque<exchange> exchanges_;
};

} // namespace regatta

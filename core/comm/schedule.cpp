// SPDX-License-Identifier: Apache-2.0
#include "comm/schedule.hpp"

#include <algorithm>

namespace regatta::comm {

std::vector<round_of_pairs> tournament(std::uint32_t ranks) {
  std::vector<round_of_pairs> rounds;
  if (ranks < 2) return rounds;
  // The circle method: seat 0 stays, the others move on by one each round; the rank of an added seat is left out.
  const std::uint32_t seats = ranks + ranks % 2, moving = seats - 1;
  const auto rank_at = [&](std::uint32_t seat, std::uint32_t round) {
    return seat == 0 ? 0 : 1 + (seat - 1 + round) % moving;
  };
  for (std::uint32_t round = 0; round < moving; ++round) {
    round_of_pairs& pairs = rounds.emplace_back();
    for (std::uint32_t seat = 0; seat < seats / 2; ++seat) {
      const std::uint32_t a = rank_at(seat, round), b = rank_at(seats - 1 - seat, round);
      if (std::max(a, b) < ranks) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
  }
  return rounds;
}

std::vector<round_of_pairs> one_by_one(const std::vector<round_of_pairs>& rounds) {
  std::vector<round_of_pairs> all;
  for (const round_of_pairs& round : rounds)
    for (const rank_pair& pair : round) all.push_back({pair});
  return all;
}

} // namespace regatta::comm

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
  return divided(rounds, 1);
}

std::vector<round_of_pairs> divided(const std::vector<round_of_pairs>& rounds, std::size_t most) {
  std::vector<round_of_pairs> all;
  for (const round_of_pairs& round : rounds)
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (i % most == 0) all.emplace_back();
      all.back().push_back(round[i]);
    }
  return all;
}

std::vector<round_of_pairs> packed(const std::vector<rank_pair>& pairs, std::size_t most) {
  std::vector<round_of_pairs> rounds;
  for (const rank_pair& pair : pairs) {
    const auto is_apart = [&](const rank_pair& other) {
      return other.first != pair.first && other.first != pair.second && other.second != pair.first &&
             other.second != pair.second;
    };
    const auto free = std::ranges::find_if(rounds, [&](const round_of_pairs& round) {
      return round.size() < most && std::ranges::all_of(round, is_apart);
    });
    (free == rounds.end() ? rounds.emplace_back() : *free).push_back(pair);
  }
  return rounds;
}

std::vector<round_of_pairs> sample(const std::vector<round_of_pairs>& rounds, std::size_t many) {
  if (rounds.size() <= many) return rounds;
  std::vector<round_of_pairs> chosen;
  for (std::size_t i = 0; i < many; ++i) chosen.push_back(rounds[i * rounds.size() / many]);
  return chosen;
}

round_of_pairs across_halves(std::uint32_t ranks) {
  round_of_pairs round;
  for (std::uint32_t r = 0; r < ranks / 2; ++r) round.emplace_back(r, r + ranks / 2);
  return round;
}

round_of_pairs of_neighbours(std::uint32_t ranks) {
  round_of_pairs round;
  for (std::uint32_t r = 0; r + 1 < ranks; r += 2) round.emplace_back(r, r + 1);
  return round;
}

} // namespace regatta::comm

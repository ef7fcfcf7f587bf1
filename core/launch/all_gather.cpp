// SPDX-License-Identifier: Apache-2.0
#include "launch/all_gather.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/failure.hpp"

namespace regatta {

std::optional<std::vector<blob>> all_gather::add(std::uint32_t rank, std::string tag, blob part,
                                                 std::vector<std::uint32_t> members) {
  auto& mine = ranks_.at(rank);
  if (mine.tag || mine.left)
    throw failure(exit_code::run, fmt::format("calls \"{}\" {}", tag,
                                              mine.left ? "after its result" : "while it waits in another exchange"));
  if (members.empty()) {
    members.resize(ranks_.size());
    std::iota(members.begin(), members.end(), 0u);
  }
  mine.tag = std::move(tag);
  mine.part = std::move(part);
  mine.members = std::move(members);
  const auto waits_too = [&](std::uint32_t r) {
    return ranks_.at(r).tag == mine.tag && ranks_.at(r).members == mine.members;
  };
  if (!std::ranges::all_of(mine.members, waits_too)) return {};

  std::vector<blob> out;
  for (const std::uint32_t r : std::vector(mine.members)) {
    out.push_back(std::move(ranks_.at(r).part));
    ranks_.at(r) = {};
  }
  return out;
}

std::optional<std::string> all_gather::deadlock() const {
  std::string who;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].tag && !ranks_[r].left) return {};
    if (!who.empty()) who += ", ";
    who += ranks_[r].tag ? fmt::format("rank {} in \"{}\"", r, *ranks_[r].tag)
                         : fmt::format("rank {} has given its result", r);
  }
  if (std::none_of(ranks_.begin(), ranks_.end(), [](const entry& e) { return e.tag.has_value(); })) return {};
  return "deadlock, all ranks wait for each other: " + who;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "launch/all_gather.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/failure.hpp"

namespace regatta {

std::optional<std::vector<blob>> all_gather::add(std::uint32_t rank, std::string tag, blob part) {
  auto& mine = ranks_.at(rank);
  if (mine.tag || mine.left)
    throw failure(exit_code::run, fmt::format("calls \"{}\" {}", tag,
                                              mine.left ? "after its result" : "while it waits in another exchange"));
  mine.tag = std::move(tag);
  mine.part = std::move(part);
  if (!std::all_of(ranks_.begin(), ranks_.end(), [&](const entry& e) { return e.tag == mine.tag; })) return {};

  std::vector<blob> out;
  for (auto& e : ranks_) {
    out.push_back(std::move(e.part));
    e = {};
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

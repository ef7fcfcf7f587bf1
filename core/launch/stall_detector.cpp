// SPDX-License-Identifier: Apache-2.0
#include "launch/stall_detector.hpp"

#include <algorithm>
#include <tuple>

namespace regatta {

void stall_detector::note(std::uint32_t rank, const rank_status& status, clock::time_point now) {
  entry& e = ranks_[rank];
  if (!e.watched || status.work != e.status.work) e.moved = now;
  if (!e.watched || status.rounds != e.status.rounds) e.turned = now;
  if (e.watched && status.step != e.status.step) {
    if (!e.first_step_done) {
      e.first_step_done = now;
      e.first_step = status.step;
    }
    e.last_step_done = now;
  }
  e.watched = true;
  e.status = status;
}

void stall_detector::forgive(clock::duration time) {
  for (entry& e : ranks_) {
    e.moved += time;
    e.turned += time;
  }
}

// Returns the mean time of a step of the slowest rank, over the steps seen so far.
stall_detector::clock::duration stall_detector::usual_step() const {
  clock::duration longest{};
  for (const entry& e : ranks_)
    if (e.first_step_done && e.status.step > e.first_step)
      longest = std::max(longest, (e.last_step_done - *e.first_step_done) /
                                      static_cast<clock::duration::rep>(e.status.step - e.first_step));
  return longest;
}

stall_detector::clock::duration stall_detector::limit_of(const entry& e) const {
  if (limits_.same) return *limits_.same;
  if (e.status.pace == pace::unseen) return limits_.unseen;
  // A server counts no steps itself.
  const bool stepping = std::any_of(ranks_.begin(), ranks_.end(), [](const entry& r) { return r.status.step > 0; });
  if (e.status.pace == pace::rare || !stepping) return limits_.rare;
  return std::max<clock::duration>(limits_.step, limits_.usual_steps * usual_step());
}

bool stall_detector::waits(const entry& e, clock::time_point now) const {
  return e.status.waits == waiting::coordinator || (e.status.waits == waiting::peers && now - e.turned <= limit_of(e));
}

std::vector<std::uint32_t> stall_detector::stuck(clock::time_point now) const {
  if (!limits_.watched) return {};
  std::vector<std::uint32_t> all, blamed;
  bool some_go_on = false;
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const entry& e = ranks_[r];
    if (!e.watched) continue;
    if (now - e.moved <= limit_of(e)) {
      some_go_on = true;
      continue;
    }
    all.push_back(r);
    if (!waits(e, now)) blamed.push_back(r);
  }
  if (!blamed.empty()) return blamed;
  if (some_go_on) return {};
  std::ranges::stable_sort(all, {}, [&](std::uint32_t r) {
    const rank_status& s = ranks_[r].status;
    return std::tuple(s.waits == waiting::coordinator, s.step);
  });
  return all;
}

} // namespace regatta

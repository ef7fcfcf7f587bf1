// SPDX-License-Identifier: Apache-2.0
#include "shared_cores.hpp"

#include <algorithm>
#include <cmath>

namespace regatta {

shared_cores::shared_cores(const cores_options& options)
    : options_(options), ranks_(options.group_of.size()), members_(options.groups.size()) {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) members_[options.group_of[r]].push_back(r);
  for (std::size_t g = 0; g < members_.size(); ++g) { // more cores than ranks are never busy
    const double cores = std::min(std::floor(options.groups[g].cores), static_cast<double>(members_[g].size()));
    cores_until_.emplace_back(static_cast<std::size_t>(std::max(1.0, cores)));
  }
}

bool shared_cores::any_shared() const {
  return std::ranges::any_of(members_, [](const auto& ranks) { return ranks.size() > 1; });
}

std::uint64_t shared_cores::begin(std::uint32_t rank, std::uint64_t earliest, std::uint64_t ns) {
  const std::uint32_t group = options_.group_of[rank];
  std::vector<std::uint64_t>& cores = cores_until_[group];
  if (!ns || options_.groups[group].threads > 0 || members_[group].size() <= cores.size()) return earliest;
  // Of the cores that are idle at `earliest` the one that became idle last: the others keep their longer idle time for
  // work that is submitted later but may begin before `earliest`. If none is idle, the one that becomes idle first.
  auto core = std::ranges::min_element(cores);
  for (auto c = cores.begin(); c != cores.end(); ++c)
    if (*c <= earliest && *c > *core) core = c;
  const std::uint64_t from = std::max(earliest, *core);
  *core = from + ns;
  return from;
}

// Returns the part of a ns that computing loses for each ns of work: 0 if a core is idle.
double shared_cores::share(std::uint32_t group, std::uint64_t now, work_kind kind) const {
  const core_group& g = options_.groups[group];
  const auto computing = std::ranges::count_if(members_[group], [&](std::uint32_t r) { return ranks_[r].end > now; });
  if (g.cores - static_cast<double>(computing) * g.threads >= 1) return 0;
  return (kind == operation ? 1 : options_.loss) / g.cores;
}

// Delays the end of computing by work that is over, and by work that will go on without a pause from `from`.
void shared_cores::lose(member& r, std::uint64_t from, double past, double coming, double share) {
  const double most = std::min(share, 0.5); // of the time in which both go on
  const double more = std::min(coming * share, static_cast<double>(r.end - std::min(from, r.end)) * most / (1 - most));
  const auto ns = static_cast<std::uint64_t>(std::llround(past * share + more));
  r.end += ns;
  r.lost += ns;
}

void shared_cores::compute(std::uint32_t rank, std::uint64_t now, std::uint64_t ns) {
  member& r = ranks_[rank];
  if (r.end != now) r.begin = now;
  r.end = now + ns;
  const std::uint32_t group = options_.group_of[rank];
  for (const work_kind kind : {send, receive, operation}) {
    double coming = 0;
    for (const std::uint32_t m : members_[group]) {
      const auto& works = ranks_[m].works[kind];
      coming += static_cast<double>(std::max(works.until, now) - now) * works.part;
    }
    if (coming > 0 && ns) lose(r, now, 0, coming, share(group, now, kind));
  }
}

std::uint64_t shared_cores::work(std::uint32_t rank, work_kind kind, std::uint64_t now, std::uint64_t earliest,
                                 std::uint64_t ns) {
  if (!ns) return earliest;
  const std::uint32_t group = options_.group_of[rank];
  const std::uint64_t from = begin(rank, earliest, ns), over = std::min(from + ns, now),
                      coming = from + ns - std::max(from, over);
  const double part = share(group, now, kind);
  member& own = ranks_[rank];
  const std::uint64_t computing = own.end - std::min(std::max(from, now), own.end);
  const std::uint64_t shared = part > 0 ? std::min(coming, computing) : 0; // the computing that it takes turns with
  const std::uint64_t end = from + ns + shared;
  if (end > own.works[kind].until)
    own.works[kind] = {end, coming ? static_cast<double>(coming) / static_cast<double>(coming + shared) : 1};
  for (const std::uint32_t m : members_[group]) {
    member& r = ranks_[m];
    if (r.end <= now) continue;
    const std::uint64_t past = over - std::min(std::max(from, r.begin), over);
    lose(r, std::max(from, now), static_cast<double>(past), static_cast<double>(coming), part);
  }
  return end;
}

} // namespace regatta

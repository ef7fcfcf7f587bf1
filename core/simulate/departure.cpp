// SPDX-License-Identifier: Apache-2.0
#include "simulate/departure.hpp"

#include "base/failure.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <regatta/abi.h>

namespace regatta {
namespace {

// Returns the number of steps that the file gives a worker: those that have ended at a time, or a number.
std::uint64_t steps_of(const machine_file::host& h, const std::vector<simulated_step>& steps) {
  if (h.leaves_after > 0) return static_cast<std::uint64_t>(h.leaves_after);
  const auto ended = std::ranges::count_if(
      steps, [&](const simulated_step& s) { return static_cast<double>(s.end) <= h.leaves_at_ns; });
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(ended), 1); // not before the first has ended
}

} // namespace

std::optional<departure> departure_of(const run_to_simulate& r, const simulation_setup& setup,
                                      const simulation_result& whole) {
  const auto& hosts = r.machine->between.single;
  const auto found =
      std::ranges::find_if(hosts, [](const auto& h) { return h.second.leaves_after > 0 || h.second.leaves_at_ns > 0; });
  if (found == hosts.end() || !r.run->communicates) return {};
  const cluster_layout& layout = r.run->job.layout;
  departure d;
  for (std::uint32_t rank = 0; rank < layout.size(); ++rank)
    if (layout.host_of[rank] == found->first) d.ranks.push_back(rank);
  if (d.ranks.empty() || d.ranks.front() >= layout.workers)
    throw failure(exit_code::usage,
                  fmt::format("network.host: expected a host with workers, which may leave, got {}", found->first));
  const std::vector<simulated_step>& steps = whole.steps.at(d.ranks.front());
  d.steps = steps_of(found->second, steps);
  if (d.steps >= steps.size()) return {};
  const std::string when = fmt::format("host {} leaves after step {}, at {:.6g} s", found->first, d.steps,
                                       1e-9 * static_cast<double>(steps[d.steps - 1].end));
  const auto ends = [&](const std::string& why) {
    return failure(exit_code::run, when + ": the run ends there, " + why);
  };
  if (!(r.facts->plan.flags & RG_PLAN_SURVIVES))
    throw ends(fmt::format("as strategy {} does not survive a death (RG_PLAN_SURVIVES)", setup.strategy));
  if (std::ranges::any_of(layout.server_rank, [&](std::uint32_t rank) { return layout.host_of[rank] == found->first; }))
    throw ends("as a server is on that host");
  if (d.ranks.size() == layout.workers) throw ends("as no other host has workers");
  d.text = when + ": figures are those of the other workers";
  return d;
}

} // namespace regatta

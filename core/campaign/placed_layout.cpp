// SPDX-License-Identifier: Apache-2.0
#include "campaign/placed_layout.hpp"

#include "base/failure.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {
namespace {

// Rank r is process r of the launcher.
placement by_process(const host_group& hosts, std::uint32_t size) {
  placement p;
  for (std::uint32_t r = 0; r < size; ++r)
    for (std::uint32_t h = 0; h < hosts.hosts().size(); ++h)
      if (std::ranges::binary_search(hosts.hosts()[h].slots, r)) {
        p.host.push_back(h);
        p.slot.push_back(r);
      }
  return p;
}

} // namespace

placed_layout place_case(const registry& plugins, const case_config& c, std::uint32_t servers,
                         const host_group* hosts) {
  placed_layout out;
  out.layout = cluster_layout::make(static_cast<std::uint32_t>(c.cluster.workers), servers,
                                    servers && c.cluster.colocate, static_cast<std::uint32_t>(c.cluster.hosts));
  if (!hosts) return out;
  std::vector<std::vector<std::uint32_t>> slots;
  for (const host_link& h : hosts->hosts()) slots.push_back(h.slots);
  if (slots.size() > 1 && c.cluster.hosts != 1)
    throw failure(exit_code::usage,
                  fmt::format("cluster.hosts: it imitates hosts on one machine, but {} has started processes on {} "
                              "hosts: leave it out, got {}",
                              hosts->launcher(), slots.size(), c.cluster.hosts));
  const std::uint32_t size = out.layout.size();
  const bool own_processes = !plugins.described(kind::transport, c.transport.id).launcher.empty();
  std::optional<placement> places;
  if (own_processes) {
    if (size <= hosts->size()) places = by_process(*hosts, size);
  } else {
    places = place_ranks(slots, out.layout, c.cluster.place, static_cast<std::uint32_t>(c.cluster.server_hosts));
  }
  if (!places) {
    out.lacking = fmt::format(
        "needs {} ranks{}, and {} has started {} processes on {} host{}", size,
        c.cluster.server_hosts ? fmt::format(" with servers on {} of the hosts", c.cluster.server_hosts) : "",
        hosts->launcher(), hosts->size(), slots.size(), slots.size() == 1 ? "" : "s");
    return out;
  }
  if (slots.size() > 1) set_hosts(out.layout, *places);
  out.places = std::move(*places);
  return out;
}

} // namespace regatta

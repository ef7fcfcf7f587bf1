// SPDX-License-Identifier: Apache-2.0
#include "join/placement.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace regatta {
namespace {

struct spot {
  std::uint32_t host, slot;
};

// Returns the processes of the hosts `first` .. `last - 1` in the order in which ranks take them.
std::vector<spot> order_of(const std::vector<std::vector<std::uint32_t>>& slots, std::size_t first, std::size_t last,
                           bool in_turn) {
  std::vector<spot> order;
  std::size_t deepest = 0;
  for (std::size_t h = first; h < last; ++h) deepest = std::max(deepest, slots[h].size());
  if (in_turn) {
    for (std::size_t depth = 0; depth < deepest; ++depth)
      for (std::size_t h = first; h < last; ++h)
        if (depth < slots[h].size()) order.push_back({static_cast<std::uint32_t>(h), slots[h][depth]});
  } else {
    for (std::size_t h = first; h < last; ++h)
      for (const std::uint32_t s : slots[h]) order.push_back({static_cast<std::uint32_t>(h), s});
  }
  return order;
}

// Rank r is process r of the launcher. Returns std::nullopt if there are fewer processes than ranks.
std::optional<placement> by_process(const std::vector<std::vector<std::uint32_t>>& slots, std::uint32_t size) {
  placement p;
  for (std::uint32_t r = 0; r < size; ++r)
    for (std::uint32_t h = 0; h < slots.size(); ++h)
      if (std::ranges::binary_search(slots[h], r)) {
        p.host.push_back(h);
        p.slot.push_back(r);
      }
  if (p.host.size() < size) return {};
  return p;
}

} // namespace

std::optional<placement> place_ranks(const std::vector<std::vector<std::uint32_t>>& slots, const cluster_layout& layout,
                                     const std::string& place, std::uint32_t server_hosts) {
  const bool in_turn = place == "round_robin";
  const std::size_t hosts = slots.size();
  const std::size_t apart = std::min<std::size_t>(layout.size() > layout.workers ? server_hosts : 0, hosts - 1);
  std::vector<spot> order = order_of(slots, 0, hosts - apart, in_turn);
  if (apart) {
    const std::vector<spot> of_servers = order_of(slots, hosts - apart, hosts, in_turn);
    if (order.size() < layout.workers || of_servers.size() < layout.size() - layout.workers) return {};
    order.resize(layout.workers);
    order.insert(order.end(), of_servers.begin(), of_servers.end());
  }
  if (order.size() < layout.size()) return {};
  placement p;
  for (std::uint32_t r = 0; r < layout.size(); ++r) {
    p.host.push_back(order[r].host);
    p.slot.push_back(order[r].slot);
  }
  return p;
}

placed_layout place_layout(const std::string& launcher, const std::vector<std::vector<std::uint32_t>>& slots,
                           const cluster_layout& layout, const cluster_config& c, bool own_processes) {
  placed_layout out{layout, {}, ""};
  if (slots.size() > 1 && c.hosts != 1)
    throw failure(exit_code::usage,
                  fmt::format("cluster.hosts: it imitates hosts on one machine, but {} has started processes on {} "
                              "hosts: leave it out, got {}",
                              launcher, slots.size(), c.hosts));
  std::size_t processes = 0;
  for (const auto& of_host : slots) processes += of_host.size();
  const auto apart = static_cast<std::uint32_t>(c.server_hosts);
  auto places = own_processes ? by_process(slots, layout.size()) : place_ranks(slots, layout, c.place, apart);
  if (!places) {
    out.lacking = fmt::format("needs {} ranks{}, and {} has started {} processes on {} host{}", layout.size(),
                              apart ? fmt::format(" with servers on {} of the hosts", apart) : "", launcher, processes,
                              slots.size(), slots.size() == 1 ? "" : "s");
    return out;
  }
  if (slots.size() > 1) set_hosts(out.layout, *places);
  out.places = std::move(*places);
  return out;
}

void set_hosts(cluster_layout& layout, const placement& p) {
  std::map<std::uint32_t, std::uint32_t> number;
  for (std::uint32_t r = 0; r < layout.size(); ++r)
    layout.host_of[r] = number.emplace(p.host[r], static_cast<std::uint32_t>(number.size())).first->second;
}

} // namespace regatta

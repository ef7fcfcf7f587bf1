// SPDX-License-Identifier: Apache-2.0
#include "campaign/host_group.hpp"

#include "launch/host_link.hpp"

#include <fmt/format.h>

namespace regatta {

std::uint32_t host_group::size() const noexcept {
  std::size_t n = 0;
  for (const host_link* h : hosts()) n += h->slots.size();
  return static_cast<std::uint32_t>(n);
}

placed_layout place_case(const registry& plugins, const case_config& c, std::uint32_t servers,
                         const host_group* hosts) {
  const auto layout = cluster_layout::make(static_cast<std::uint32_t>(c.cluster.workers), servers,
                                           servers && c.cluster.colocate, static_cast<std::uint32_t>(c.cluster.hosts));
  if (!hosts) return {layout, {}, ""};
  return hosts->place(layout, c.cluster, !plugins.described(kind::transport, c.transport.id).launcher.empty());
}

failure launcher_missing(const std::string& transport, const std::string& command, std::uint32_t ranks,
                         const std::string& verb) {
  return {exit_code::usage, fmt::format("transport {} needs processes that a launcher starts: run {} {} regatta {}",
                                        transport, command, ranks, verb)};
}

} // namespace regatta

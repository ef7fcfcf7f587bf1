// SPDX-License-Identifier: Apache-2.0
#include "cli/comm_launch.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/text.hpp"
#include "campaign/prepare.hpp"
#include "cli/rank_logs.hpp"
#include "cluster/layout.hpp"
#include "join/placement.hpp"
#include "launch/cpus.hpp"
#include "launch/host_link.hpp"
#include "launch/launch.hpp"
#include "registry/run_in_child.hpp"
#include "registry/transport_host.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// Returns where the ranks run: on this host without a launcher.
placement places_of(std::uint32_t ranks, bool one_per_host, const host_group* launcher) {
  placement p{std::vector<std::uint32_t>(ranks), std::vector<std::uint32_t>(ranks)};
  for (std::uint32_t r = 0; launcher && r < ranks; ++r)
    for (std::uint32_t h = 0; h < launcher->hosts().size(); ++h) {
      const auto& slots = launcher->hosts()[h]->slots;
      if (one_per_host ? h != r : !std::ranges::binary_search(slots, r)) continue;
      p.host[r] = h;
      p.slot[r] = one_per_host ? slots.front() : r;
    }
  return p;
}

// Returns the name of each rank's host.
std::vector<std::string> names_of_hosts(const std::vector<std::uint32_t>& host_of, const host_group* launcher) {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0;
  std::vector<std::string> names;
  for (const std::uint32_t host : host_of)
    names.push_back(launcher ? launcher->hosts()[host]->name : known ? name.data() : "this host");
  return names;
}

} // namespace

std::vector<std::string> files_of_transport(const registry& plugins, const component_choice& choice) {
  (void)parameter_values(plugins.find(kind::transport, choice.id), choice.parameters); // throws if they do not fit
  return run_in_child([&](const stage_function& stage) -> json {
    const registry loading = plugins.loading();
    const transport_summary t = summarise_transport(loading, choice.id, choice.parameters, stage);
    if (t.caps.flags & RG_CAP_NONE)
      throw failure(
          exit_code::usage,
          fmt::format("transport {} has no connections between ranks, so there is nothing to measure: use shm or tcp",
                      choice.id));
    json files = json::array();
    for (const std::string& id : t.transports) files.push_back(loading.described(kind::transport, id).file.string());
    return files;
  });
}

comm_outcome launch_comm(comm::plan p, const comm_launch_options& o, host_group* launcher,
                         const std::vector<std::vector<std::string>>& addresses, std::vector<std::string>& warnings) {
  const placement places = places_of(p.ranks, o.one_per_host, launcher);
  std::map<std::uint32_t, std::vector<std::uint32_t>> ranks_of; // by host
  for (std::uint32_t r = 0; r < p.ranks; ++r) ranks_of[places.host[r]].push_back(r);
  std::map<std::uint32_t, std::vector<int>> cpus_of;
  for (const auto& [host, ranks] : ranks_of) {
    const cpu_assignment cpus =
        assign_cpus(launcher ? launcher->hosts()[host]->cpus : this_hosts_cpus(), ranks.size(), 1, o.pin);
    for (std::size_t i = 0; i < ranks.size(); ++i) cpus_of[ranks[i]] = cpus.cpus[i];
    if (!cpus.oversubscribed) continue;
    const std::string text = fmt::format("{} ranks on {} cores{}{}", ranks.size(), cpus.available,
                                         ranks_of.size() > 1 ? " of host " + launcher->hosts()[host]->name : "",
                                         p.spin_ns ? ": they do not spin" : "");
    p.spin_ns = 0;
    if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(text);
  }
  cluster_layout layout = cluster_layout::make(p.ranks, 0, false);
  set_hosts(layout, places);
  p.host_of = layout.host_of;
  p.addresses.resize(*std::ranges::max_element(p.host_of) + 1);
  for (std::uint32_t r = 0; r < p.ranks; ++r) p.addresses[p.host_of[r]] = addresses[places.host[r]];
  launch_plan launched;
  launched.address = addresses.front().front();
  if (launcher) launched.hosts = launcher->hosts();
  launched.lasting = o.own_processes;
  set_timeout(launched, o.timeout);
  launched.stall.setting = "--timeout";
  for (std::uint32_t r = 0; r < p.ranks; ++r) {
    comm::plan mine = p;
    const cpu_supply cpus = launcher ? launcher->hosts()[places.host[r]]->cpus : this_hosts_cpus();
    mine.pairs.threads = static_cast<unsigned>(cpus.cpus.size());
    launched.ranks.push_back({fmt::format("rank of {}", p.transport), cpus_of[r],
                              std::make_shared<const json>(json{{"comm", mine}}), places.host[r], places.slot[r]});
  }
  launch_hooks hooks;
  hooks.log = [shown = log_level_named(o.log).value_or(RG_LOG_WARNING)](std::uint32_t rank, int level,
                                                                        const std::string& text) {
    if (level <= shown)
      print_error(fmt::format("{}{}\n", rank == coordinator_rank ? "" : fmt::format("rank {}: ", rank), cleaned(text)));
  };
  const launch_result result = launch(launched, hooks);
  if (result.interrupted) throw failure(exit_code::interrupted, "interrupted");
  if (result.failure)
    throw failure(static_cast<exit_code>(result.failure->code),
                  fmt::format("{} between {} ranks: {}", p.transport, p.ranks, result.failure->message));
  return {std::move(p), names_of_hosts(places.host, launcher), result.results};
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "campaign/plugin_facts.hpp"

#include "base/findings.hpp"
#include "base/instruction_set.hpp"
#include "base/json_members.hpp"
#include "campaign/host_group.hpp"
#include "cluster/peers.hpp"
#include "cluster/plan.hpp"
#include "rank/job.hpp"
#include "rank/model.hpp"
#include "registry/transport_host.hpp"

#include <algorithm>
#include <concepts>
#include <map>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/ext/device.h>
#include <regatta/plugin.hpp>

namespace regatta {

template <class F, class Visit>
requires std::same_as<std::remove_const_t<F>, plugin_facts>
void each_member(F& f, Visit&& visit) {
  visit("model", f.model);
  visit("servers", f.servers);
  visit("plan.flags", f.plan.flags);
  visit("plan.lanes", f.plan.lanes);
  visit("plan.period", f.plan.period);
  visit("plan.steady_from", f.plan.steady_from);
  visit("communicates", f.communicates);
  visit("caps.flags", f.caps.flags);
  visit("caps.memory", f.caps.memory);
  visit("caps.p2p", f.caps.p2p);
  visit("caps.own_threads", f.caps.own_threads);
  visit("transport_device", f.transport_device);
  visit("collectives", f.collectives);
  visit("regions", f.regions);
  visit("transports", f.transports);
  visit("files", f.files);
}

namespace {

using nlohmann::json;

// ------------------------------------------------------------------------------------------------ in the child ---

// Returns RG_MEMORY_* kinds; a transport must reach at least one of them. Host memory is always among them, because the
// engine can copy a device's memory to the host.
std::uint32_t memory_of_regions(const registry& plugins, const case_config& c, const std::string& executor_id) {
  if (c.train.device == "cpu" || executor_id.empty()) return RG_MEMORY_HOST;
  const component& executor = plugins.find(kind::executor, executor_id);
  const auto* device = executor.extension ? static_cast<const rg_device*>(executor.extension(RG_EXT_DEVICE)) : nullptr;
  return RG_MEMORY_HOST | (device ? RG_MEMORY_DEVICE : 0);
}

void ask_strategy(const registry& plugins, const case_config& c, const host_group* hosts, const stage_function& stage,
                  plugin_facts& out) {
  const auto who =
      fmt::format("strategy {} ({})", c.strategy.id, plugins.described(kind::strategy, c.strategy.id).file.string());
  stage(who, "was being loaded");
  const component& strategy = plugins.find(kind::strategy, c.strategy.id);
  stage(who, "was asked for its plan");
  plugin_host host;
  const parameter_values values(strategy, c.strategy.parameters);
  const auto servers = static_cast<std::uint32_t>(c.cluster.servers);
  rank_job job; // holds the optimizer settings that a rank will have
  job.config = c;
  const optimizer_config optimizer = job.optimizer();
  // Only the plan says whether the strategy wants servers. If it does not, or the case has none, plan again without
  // servers.
  auto layout = place_case(plugins, c, servers, hosts).layout;
  rg_plan plan = plan_of(strategy.strategy, values.data(), layout, optimizer, host, strategy.id);
  const bool served = (plan.flags & RG_PLAN_SERVERS) && servers;
  if (!served) {
    layout = place_case(plugins, c, 0, hosts).layout;
    plan = plan_of(strategy.strategy, values.data(), layout, optimizer, host, strategy.id);
  }
  out.servers = served ? servers : 0;
  out.plan = plan;
  out.communicates = talks(strategy.strategy, values.data(), layout.view(UINT32_MAX));
}

json ask_plugins(const registry& plugins, const case_config& c, const host_group* hosts, const stage_function& stage) {
  plugin_facts out;
  findings wrong;
  wrong.attempt([&] { out.model = model_facts_of(plugins, c, stage); });
  wrong.attempt([&] { ask_strategy(plugins, c, hosts, stage, out); });
  transport_summary transport{};
  wrong.attempt([&] { transport = summarise_transport(plugins, c.transport.id, c.transport.parameters, stage); });
  wrong.raise();
  out.caps = transport.caps;
  out.transport_device = transport.device;
  out.collectives = transport.collectives;
  out.regions = memory_of_regions(plugins, c, out.model.executor);
  out.transports = transport.transports;
  std::vector<std::string>& files = out.files;
  for (const std::string& id : out.transports) files.push_back(plugins.described(kind::transport, id).file.string());
  files.push_back(plugins.described(kind::model, c.model.id).file.string());
  files.push_back(plugins.described(kind::strategy, c.strategy.id).file.string());
  if (!out.model.executor.empty()) files.push_back(plugins.described(kind::executor, out.model.executor).file.string());
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return members_to_json(out);
}

// ----------------------------------------------------------------------------------------------- in the parent ---

plugin_facts facts_from_json(const json& j) {
  plugin_facts facts;
  take_members(j, facts);
  return facts;
}

std::string key_of(const case_config& c) {
  json j = to_json(c);
  j.erase("swept");
  j.erase("name");
  j.at("experiment").erase("seed"); // decides values only; repeats may vary it
  return j.dump();
}

} // namespace

void plugin_facts_cache::collect(const std::vector<case_config>& cases) {
  std::vector<std::string> keys;
  std::vector<const case_config*> asked;
  for (const case_config& c : cases) {
    const std::string key = key_of(c);
    if (known_.count(key) || std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    keys.push_back(key);
    asked.push_back(&c);
  }
  const registry loading = plugins_.loading();
  child_options options;
  options.interrupted = interrupted;
  // One child for each instruction set: what a plugin loads keeps the first one.
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < asked.size(); ++i) groups[asked[i]->train.isa].push_back(i);
  for (const auto& [isa, group] : groups) {
    auto results = run_all_in_child(
        group.size(),
        [&, isa = isa, &members = group](std::size_t i, const stage_function& stage) {
          cap_instruction_set(isa);
          return ask_plugins(loading, *asked[members[i]], hosts, stage);
        },
        options);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto& failed = results[i].failed;
      if (failed && failed->code() == exit_code::interrupted) continue; // no facts: a later of() collects them again
      known_[keys[group[i]]] = failed ? kept{{}, failed} : kept{facts_from_json(results[i].value), {}};
    }
  }
}

const plugin_facts& plugin_facts_cache::of(const case_config& c) {
  collect({c});
  const auto found = known_.find(key_of(c));
  if (found == known_.end()) throw failure(exit_code::interrupted, "interrupted");
  if (found->second.failed) throw *found->second.failed;
  return found->second.facts;
}

} // namespace regatta

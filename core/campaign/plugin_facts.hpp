// SPDX-License-Identifier: Apache-2.0
//
// Facts about a case that its plugins report. A child process calls the plugins; the coordinator never runs their code.
#pragma once

#include "campaign/host_group.hpp"
#include "campaign/model_facts.hpp"
#include "experiment/experiment.hpp"
#include "registry/registry.hpp"
#include "registry/run_in_child.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <regatta/plugin.hpp>

namespace regatta {

// The facts about one case.
struct plugin_facts {
  model_facts model;
  std::uint32_t servers = 0; // servers that run: cluster.servers, or 0 if the strategy wants none
  // Only flags, lanes, period and steady_from are set; lanes and period are at least 1.
  rg_plan plan = rg::make_versioned<rg_plan>();
  bool communicates = false; // true if any two ranks ever exchange a message
  // Only flags, memory, p2p and own_threads are set.
  rg_transport_caps caps = rg::make_versioned<rg_transport_caps>();
  std::string transport_device;        // the kind of device whose memory the transport reaches; empty: any
  bool collectives = false;            // the transport has an all-reduce of its own
  std::uint32_t regions = 0;           // RG_MEMORY_* of weights and gradients: the transport must reach one
  std::vector<std::string> transports; // ids: the transport, and those that it opens within it
  std::vector<std::string> files;      // files of all plugins that the ranks need, sorted
};

// Keeps the facts of cases. Cases whose settings are equal share them. [main]
class plugin_facts_cache {
public:
  // The registry must outlive this object.
  explicit plugin_facts_cache(const registry& plugins) : plugins_(plugins) {}

  // Collects the facts that are missing, all in one child. Does not throw for failures of plugins, or if the user
  // interrupts: of() does.
  void collect(const std::vector<case_config>& cases);
  // Returns the facts of a case, valid as long as this object; collects them in a child if collect() did not. Throws
  // failure: usage or skipped if a plugin refuses the case, plugin if it crashes, hangs or describes itself wrongly,
  // run if no child can be started, interrupted if `interrupted` returned true.
  const plugin_facts& of(const case_config& c);
  const registry& plugins() const noexcept { return plugins_; }
  // The hosts of a launcher, which must outlive this object; null: all ranks are on this host. Set it before the facts
  // of a first case are collected.
  host_group* hosts = nullptr;
  // Returns the addresses of cluster.interface on this host (network/interfaces.hpp), for ranks without a launcher.
  // Empty: no rank runs on this host, as in a simulation; the key is not looked at.
  std::function<std::vector<std::string>(const std::string& interface)> addresses;

  std::function<bool()> interrupted; // polled while a child runs; true ends the child; empty: never

private:
  struct kept {
    plugin_facts facts;
    std::optional<failure> failed;
  };
  const registry& plugins_;
  std::map<std::string, kept> known_; // key: the case as JSON without name, seed and swept values
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Facts about a case that its plugins report. A child process calls the plugins; the coordinator never runs their code.
#pragma once

#include "campaign/facts.hpp"
#include "config/experiment.hpp"
#include "registry/ask.hpp"
#include "registry/registry.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace regatta {

// The facts about one case.
struct case_answers {
  model_facts model;
  std::uint32_t servers = 0;      // servers that run: those of the case if the strategy wants servers
  rg_plan plan{};                 // only flags, lanes, period and steady_from; lanes and period are at least 1
  bool communicates = false;      // true if any two ranks ever exchange a message
  rg_transport_caps caps{};       // only flags, memory, p2p and own_threads
  bool collectives = false;       // the transport has collectives of its own
  std::uint32_t regions = 0;      // RG_MEMORY_*: a transport must reach one of them
  std::vector<std::string> files; // files of all plugins that the ranks need, sorted
};

// Keeps answers of plugins. Cases whose settings are equal share an answer. [main]
class plugin_answers {
public:
  // The registry must outlive this object.
  explicit plugin_answers(const registry& plugins) : plugins_(plugins) {}

  // Computes the answers that are missing, all in one child. Does not throw for failures of plugins, or if the user
  // interrupts: of() does.
  void ask(const std::vector<case_config>& cases);
  // Returns the answer for a case, valid as long as this object; computes it in a child if ask() did not. Throws
  // failure: usage or skipped if a plugin refuses the case, plugin if it crashes or hangs, interrupted if `interrupted`
  // returned true.
  const case_answers& of(const case_config& c);
  const registry& plugins() const noexcept { return plugins_; }

  std::function<bool()> interrupted; // polled while a child runs; true ends the child; empty: never

private:
  struct kept {
    case_answers value;
    std::optional<failure> failed;
  };
  const registry& plugins_;
  std::map<std::string, kept> known_; // key: the case as JSON without name and swept values
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Facts about a case that its plugins report. A child process calls the plugins; the coordinator never runs their code.
#pragma once

#include "campaign/facts.hpp"
#include "config/experiment.hpp"
#include "rank/exchange.hpp"
#include "registry/ask.hpp"
#include "registry/registry.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace regatta {

struct case_answers {
  model_facts model;
  std::uint32_t servers = 0; // servers that run: those of the case if the strategy wants servers
  rg_plan plan{};            // lanes and period are filled in
  bool communicates = false; // true if any two ranks ever exchange a message
  rg_transport_caps caps{};
  bool collectives = false;       // the transport has collectives of its own
  std::uint32_t regions = 0;      // RG_MEMORY_*: a transport must reach one of them
  std::vector<std::string> files; // files of all plugins that the ranks need, sorted
};

// Keeps answers of plugins. Cases that differ only in ways that no plugin sees share an answer.
class plugin_answers {
public:
  explicit plugin_answers(const registry& plugins) : plugins_(plugins) {}

  // Computes the answers that are missing, all in one child. Does not throw for failures of plugins: of() does.
  void ask(const std::vector<case_config>& cases);
  // Returns the answer for a case, valid as long as this object. Throws failure if a plugin refuses the case (usage,
  // skipped) or crashes (plugin), or if the user interrupted.
  const case_answers& of(const case_config& c);
  const registry& plugins() const noexcept { return plugins_; }

  std::function<bool()> interrupted; // polled while a child runs; true ends the child

private:
  struct kept {
    case_answers value;
    std::optional<failure> failed;
  };
  const registry& plugins_;
  std::map<std::string, kept> known_; // key: the case as JSON without name and swept values
};

} // namespace regatta

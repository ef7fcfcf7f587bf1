// SPDX-License-Identifier: Apache-2.0
//
// Facts that the plugins of a case give about it. A child process asks them; the coordinator never runs their code.
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
  std::uint32_t servers = 0; // that the strategy wants of those that the case has
  rg_plan plan{};            // lanes and period filled in
  bool communicates = false; // whether any two ranks ever exchange a message
  rg_transport_caps caps{};
  bool collectives = false;       // the transport has its own
  std::uint32_t regions = 0;      // RG_MEMORY_*: a transport must reach one of them
  std::vector<std::string> files; // of all plugins that the ranks need, sorted
};

// Asks once for every question: cases that differ in nothing that a plugin sees share an answer.
class plugin_answers {
public:
  explicit plugin_answers(const registry& plugins) : plugins_(plugins) {}

  // Asks for all that are not known yet, in one child. Never throws for what a plugin does: of() says it.
  void ask(const std::vector<case_config>& cases);
  // Throws failure: what a plugin refuses (usage, skipped), how one broke (plugin), or interrupted. Valid as long as
  // this object.
  const case_answers& of(const case_config& c);
  const registry& plugins() const noexcept { return plugins_; }

  std::function<bool()> interrupted; // ends the child that is being asked

private:
  struct kept {
    case_answers value;
    std::optional<failure> failed;
  };
  const registry& plugins_;
  std::map<std::string, kept> known_; // by the case without its name
};

} // namespace regatta

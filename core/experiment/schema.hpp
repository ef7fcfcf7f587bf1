// SPDX-License-Identifier: Apache-2.0
//
// The keys of an experiment's TOML as a table. It validates files, suggests near names, fills in defaults, and prints
// help and the resolved file. Parameters of plugins are not in it: their tables come from the registry.
#pragma once

#include "experiment/experiment.hpp"
#include "registry/registry.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>
#include <regatta/abi.h>

namespace regatta {

// Points to the member of a configuration that a key sets.
using config_member = std::variant<bool*, std::int64_t*, std::uint64_t*, double*, std::string*,
                                   std::vector<std::string>*, std::vector<double>*>;

struct schema_key {
  rg_param rule; // type, unit, bounds, choices, help as in a plugin's table; `name` is the whole path "train.batch"
  config_member (*member)(experiment& whole, case_config& point); // returns a pointer into one of its arguments
  bool sweepable;                                                 // a sweep may vary the key
  bool above_min = false, below_max = false;                      // true: rule.min, rule.max itself is not allowed

  std::string path() const { return rule.name; }
  std::string section() const; // the path up to its first dot: "optimizer" of "optimizer.schedule.name"
  std::string leaf() const;    // the path after its first dot: "schedule.name"
};

// [any] Returns all keys, in the order of the resolved file; a section's keys stand together. Valid for ever.
const std::vector<schema_key>& schema();

// The sections that choose a plugin and hold its parameters, by the kind of the plugin.
inline constexpr kind plugin_sections[] = {kind::model, kind::strategy, kind::transport};
// Return the choice of the plugin in this section of `c`. Require one of plugin_sections.
component_choice& choice_of(case_config& c, kind section);
const component_choice& choice_of(const case_config& c, kind section);

// [any] assign() stores `value`, which accept() (config/schema_rules.hpp) returned, in the key's member of `whole` or
// `point`. read() returns the stored value of that member.
void assign(const schema_key& key, const nlohmann::json& value, experiment& whole, case_config& point);
nlohmann::json read(const schema_key& key, const experiment& whole, const case_config& point);

} // namespace regatta

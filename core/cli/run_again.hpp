// SPDX-License-Identifier: Apache-2.0
//
// `regatta run --again`: runs cases of a stored result again, from their run cards alone. Every result has them as
// "cards" of its context: one {"case": swept values, "toml": the resolved experiment} for each case.
#pragma once

#include "config/load.hpp"
#include "registry/registry.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// [any] Returns the cards of an experiment's cases, in their order.
nlohmann::json run_cards(const experiment& e);

// The cases of a result that run again. [main]
class cases_again {
public:
  // Reads the result: its file, or its folder. `only` is the number of a case, counted from 1; 0: all cases. Throws
  // failure (usage) if it is no result, is simulated, has no cards, or has no such case.
  cases_again(const std::string& result, std::size_t only);

  // Returns the files and folders of plugins that the cards name, and the files that the plugins of the cases had, as
  // far as they exist.
  std::vector<std::string> plugin_path() const;
  // Returns the experiment of the cases, with the options --set. Throws failure: plugin if a plugin is missing, with
  // its name, version and binary; usage, with one error a line, if an option sets a key in which the cases differ, a
  // key or value is invalid, or a data file is missing.
  experiment load(const std::vector<std::string>& set, const registry& plugins) const;
  // Returns texts on what is not as it was: binaries of plugins and of this program. `now` is the context of the new
  // run. Throws failure (usage) if data have other contents, with their path: the cases would do other work.
  std::vector<std::string> differences(const nlohmann::json& now) const;
  // The stored result with the entries of these cases only, to compare it with the new one.
  const nlohmann::json& stored() const { return stored_; }
  const std::string& name() const { return name_; } // as the user gave it

private:
  const nlohmann::json& context() const { return stored_.at("context"); }
  bool uses(const nlohmann::json& plugin) const;

  std::string name_;
  nlohmann::json stored_;
  std::vector<nlohmann::json> cards_; // of the cases that run again
};

} // namespace regatta

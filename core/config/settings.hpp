// SPDX-License-Identifier: Apache-2.0
//
// The settings of a file and of the command line, key by key: names and values checked. Parameters in a table of no id
// wait until a case has chosen its plugins.
#pragma once

#include "config/document.hpp"
#include "config/load.hpp"
#include "config/problems.hpp"
#include "config/schema.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace regatta {

// A value somebody wrote.
struct setting {
  toml_node node;
  origin from;
  enum class layer { file, set, sweep } from_layer = layer::file; // later ones win
};

// What a path names.
struct key_name {
  const schema_key* key = nullptr;       // a key of the schema, or else
  std::optional<plugin_section> section; // a parameter of a plugin of this section,
  std::string id;                        // of this one, empty: of whichever is chosen
  std::string parameter;
};

struct swept_key {
  std::string path;
  origin from;
  std::vector<setting> values;
};

// Keys that go in step: one of [sweep] alone, or the keys of one [[sweep.zip]].
struct axis {
  origin from;
  std::vector<swept_key> keys;
  std::size_t length() const { return keys.front().values.size(); }
};

struct settings {
  std::map<std::string, setting> values;    // by path
  std::vector<axis> axes;                   // the first varies slowest
  std::map<std::string, position> sections; // where they begin
  std::set<std::string> spoiled;            // given, but not as expected: a problem, and left out above
};

// Nothing, and a problem, where `path` names no key. [any]
std::optional<key_name> find_name(const std::string& path, const origin& from, const catalogue& components,
                                  problems& wrong);

// All of it; what is wrong is added to `wrong` and left out.
settings collect(const toml_node& root, const overrides& o, const catalogue& components, problems& wrong);

kind kind_of(plugin_section s);
// "sync_ps, allreduce": for messages.
std::string ids_text(const catalogue& components, plugin_section s);

// "path=value" split, the value parsed as TOML, else a string. Nothing where there is no path.
std::optional<std::pair<std::string, setting>> parse_set(const std::string& text);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The settings of a file and of the command line, key by key, with names and values checked. Parameters in a table
// without an id ([strategy], not [strategy.tree]) are checked later by make_cases(), once a case has chosen its
// plugins.
#pragma once

#include "config/diagnostics.hpp"
#include "config/load.hpp"
#include "config/schema_rules.hpp"
#include "config/toml_document.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace regatta {

// A value as the user wrote it, not converted.
struct setting {
  toml_node node;
  origin from; // of the value
  // The source of the value. If several give a key, the last of this list takes precedence.
  enum class layer { file, set, sweep } from_layer = layer::file;
};

// The key that a path names: either a key of the schema, or a parameter of a plugin.
struct key_name {
  const schema_key* key = nullptr; // null: a parameter, which the other members name
  std::optional<kind> section;     // of the plugin
  std::string id;                  // of the plugin; empty: of the plugin that the case chooses
  std::string parameter;
};

struct swept_key {
  std::string path;
  origin from;
  std::vector<setting> values; // at least one
};

// One dimension of the sweep: a key of [sweep] or --sweep alone, or the keys of one [[sweep.zip]], whose k-th values
// belong together.
struct axis {
  origin from;
  std::vector<swept_key> keys; // at least one, all with the same number of values
  std::size_t length() const { return keys.front().values.size(); }
};

struct settings {
  std::map<std::string, setting> values;    // by path, of file and --set; a key may be in `axes` too
  std::vector<axis> axes;                   // the first varies slowest
  std::map<std::string, position> sections; // the positions of the file's top-level tables
  std::set<std::string> spoiled;            // paths with an invalid value or sweep, which is left out above
  std::optional<toml_node> claims;          // the value of `claim`, for read_claims()
  bool from_options = false;                // whether --set or --sweep was given
  std::optional<toml_node> report;          // of file and --set, for parse_reports()
};

// [any] Returns the key that `path` names. If there is no such key or no plugin of that id, adds an error at `from` to
// `wrong` and returns std::nullopt. Does not check whether a plugin has the parameter.
std::optional<key_name> find_name(const std::string& path, const origin& from, const catalogue& components,
                                  diagnostics& wrong);

// [any] Returns all settings of the file `root` and of the options. Adds each invalid one to `wrong` and leaves it out.
settings collect(const toml_node& root, const overrides& o, const catalogue& components, diagnostics& wrong);

// Returns the ids of the section's plugins for messages, sorted: "allreduce, sync_ps"; "there is none".
std::string ids_text(const catalogue& components, kind s);

// [any] Splits "PATH=VALUE" at the first '='. Returns the path, and the value as TOML, or as a string if it is no TOML
// value, because the shell removes quotes; without an origin. Returns std::nullopt if there is no '=' or no path.
std::optional<std::pair<std::string, setting>> parse_set(const std::string& text);

} // namespace regatta

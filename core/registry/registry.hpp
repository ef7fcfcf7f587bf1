// SPDX-License-Identifier: Apache-2.0
//
// All plugins that were found. Folders are searched in order. For every .so file, first its ELF headers are checked;
// then a child process loads it, checks its description and answers with a copy. The coordinator has only these copies
// and loads no plugin. Ranks, and children that run plugin code, load the files that they need.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <regatta/abi.h>
#include <regatta/ext/graph.h>

namespace regatta {

enum class kind {
  model = RG_KIND_MODEL,
  executor = RG_KIND_EXECUTOR,
  transport = RG_KIND_TRANSPORT,
  strategy = RG_KIND_STRATEGY
};
std::string_view name_of(kind k);                            // "model"
std::string plural_of(kind k);                               // "models"
std::optional<kind> kind_of(std::string_view name) noexcept; // of "model" or "models"; std::nullopt for other names

// A checked component: texts are not null (except defaults and choices), and the parameter table is consistent. In a
// registry that only describes, all functions are null, `extension` too. If the file is loaded, these are not null:
//  - model without graph: create, destroy, describe, init, bind and step; evaluate too if metric is not null
//  - executor: all, and those of executor_model as for a model, without create
//  - transport: all except now and extension
//  - strategy: plan, talks, create, destroy and completed
struct component {
  enum kind kind;
  std::string id, summary;
  std::string plugin_name, plugin_version;
  std::filesystem::path file;               // absolute
  std::vector<rg_param> parameters;         // in the plugin's order, which is also the order of values
  bool is_graph = false;                    // a model whose graph an executor compiles
  bool evaluates = false;                   // a model that can be evaluated; true for every graph
  bool has_devices = false;                 // an executor that lists devices ("regatta.devices/1")
  std::string launcher;                     // "mpirun -n": must start this transport's ranks; empty: none is needed
  const void* (*extension)(const char* id); // returns an extension of the component; may be null
  // Versioned copies; functions that the plugin lacks are null. Only the members for `kind` are filled in.
  rg_model model;
  rg_graph_source graph; // of a model with a graph; else create is null
  rg_executor executor;  // `memory` is filled in even in a registry that only describes
  std::string device;    // of an executor: the kind of device that it computes on; empty: none
  rg_model executor_model;
  rg_transport transport;
  rg_strategy strategy;
};

// A file that cannot be used, and the reason: one line, without newline. Also a file of which only a component of a
// newer interface cannot be used.
struct unusable {
  std::filesystem::path file;
  std::string reason;
};

// A component that cannot be chosen, because an earlier path has one of the same kind and id.
struct shadowed {
  enum kind kind;
  std::string id;
  std::filesystem::path file, by;
};

// Whether this process may run a file's code. `tried`: yes, the coordinator has loaded the file in a child before.
// `untried`: no, a child describes it.
enum class trust { untried, tried };

class registry {
public:
  // Describes every plugin in the paths: in a folder all files that end in .so, in the order of their names. The first
  // path with a (kind, id) takes precedence; files of one folder that hold the same component are all refused. A file
  // that occurs twice, also by a link, counts once. A file that cannot be used becomes an entry of failures(). Throws
  // failure (plugin) if a folder is missing or cannot be read. Forks a child for each file (registry/run_in_child.hpp):
  // requires that the process has no other threads. [main]
  explicit registry(const std::vector<std::filesystem::path>& paths);
  // Returns a registry of these files only. `tried` loads them in this process; a rank does so with the files that the
  // coordinator names. `untried` describes them, as above. A file that is missing or cannot be used becomes an entry of
  // failures().
  static registry of_files(const std::vector<std::filesystem::path>& files, trust t = trust::tried);
  // Returns the same components, but find() loads the file of the component that it returns, into this process for
  // good. Requires a process that may crash: a child of run_in_child(), or a test.
  registry loading() const;
  ~registry();
  registry(registry&&) noexcept;

  // Valid as long as the registry. components() are those that can be chosen, in the order of the paths, the files of
  // each, and the components of each file.
  const std::vector<component>& components() const;
  const std::vector<unusable>& failures() const;
  const std::vector<shadowed>& hidden() const;
  // As find(), but never loads a file.
  const component& described(enum kind k, std::string_view id) const;
  // Returns the component; its functions are null in a registry that only describes. The reference is valid as long as
  // the registry. Throws failure (plugin) if there is none: with the components of this kind, a near name, and the
  // entries of failures(), or only that of a file named like the component; also if the file cannot be loaded
  // (loading()).
  const component& find(enum kind k, std::string_view id) const;

private:
  struct state;
  std::unique_ptr<state> state_;
  explicit registry(std::unique_ptr<state> s);
};

// Returns the folder of Regatta's own plugins, ../lib/regatta beside the program's folder, whether it exists or not.
std::filesystem::path built_in_folder();

// Values of parameters in the order of the component's table. Owns the memory to which they point. Movable: the pointer
// from data() stays valid, now owned by the new object.
class parameter_values {
public:
  // Parameters that are not in `chosen` get their defaults. Throws failure (usage) if a value does not fit, a required
  // parameter is missing, or a name is unknown. Messages have no position in a file: core/config checks the same
  // before, with positions. Keeps no reference to its arguments.
  parameter_values(const component& c, const std::map<std::string, nlohmann::json>& chosen);
  parameter_values(parameter_values&&) noexcept = default;
  const rg_value* data() const { return values_.data(); }

private:
  rg_value add(const rg_param& p, const nlohmann::json& value);

  std::vector<rg_value> values_;
  // Deques, so that pointers in values_ stay valid when another value is added.
  std::deque<std::string> strings_;
  std::deque<std::vector<std::int64_t>> ints_;
  std::deque<std::vector<double>> floats_;
  std::deque<std::vector<const char*>> lists_of_strings_;
};

// Returns the SHA-256 of the file in hex: results record which binary ran. Throws failure (plugin) if it cannot be
// read.
std::string sha256_of(const std::filesystem::path& file);

} // namespace regatta

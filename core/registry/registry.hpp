// SPDX-License-Identifier: Apache-2.0
//
// The plugins there are. Folders are searched in order; every .so in them is looked at: ELF headers first, then a child
// process loads it, checks its description and answers with a copy. The coordinator knows plugins by these copies and
// loads none; ranks, and children that are asked for more, load the files that they need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <regatta/abi.h>

namespace regatta {

enum class kind {
  model = RG_KIND_MODEL,
  executor = RG_KIND_EXECUTOR,
  transport = RG_KIND_TRANSPORT,
  strategy = RG_KIND_STRATEGY
};
std::string_view name_of(kind k);                            // "model"
std::string plural_of(kind k);                               // "models"
std::optional<kind> kind_of(std::string_view name) noexcept; // of "model" or "models"

// A component, checked: texts are not null (but for defaults and choices), the parameter table is consistent. Functions
// are null in a registry that describes. In one that loads these are there: of a model without a graph all but evaluate,
// metric, canonical, from_canonical and kernels; of an executor all, its model likewise, without create; of a transport
// all but now and extension; of a strategy plan, talks, create, destroy and completed.
struct component {
  enum kind kind;
  std::string id, summary;
  std::string plugin_name, plugin_version;
  std::filesystem::path file;               // absolute
  std::vector<rg_param> parameters;         // in the plugin's order, which is that of values
  bool is_graph = false;                    // a model that an executor computes
  bool evaluates = false;                   // a model that can be evaluated
  bool has_devices = false;                 // an executor that lists devices ("regatta.devices/1")
  std::string launcher;                     // "mpirun -n": a transport whose ranks it has to start; empty: any others
  const void* (*extension)(const char* id); // may be null
  // Versioned copies, null slots where the plugin's are missing; the one of the kind counts.
  rg_model model;
  rg_graph_source graph; // of a model that is one; else create is null
  rg_executor executor;  // its `memory` is there in a registry that describes, too
  rg_model executor_model;
  rg_transport transport;
  rg_strategy strategy;
};

// A file that could not be used, and why: one line, no newline.
struct unusable {
  std::filesystem::path file;
  std::string reason;
};

// A component that cannot be chosen, because a folder before its own has one of the same kind and id.
struct shadowed {
  enum kind kind;
  std::string id;
  std::filesystem::path file, by;
};

// Whether this process may run a file's code: a rank loads files that the coordinator has tried in a child.
enum class trust { untried, tried };

class registry {
public:
  // Describes every plugin in the folders (files that end in .so, by name), first come first served per (kind, id);
  // files of one folder that hold the same are all refused. Throws failure where a folder is missing or cannot be read.
  // Forks a child a file (registry/ask.hpp): requires that the process has no threads. [main]
  explicit registry(const std::vector<std::filesystem::path>& folders);
  // Of just these files: `tried` loads them here, which a rank does, told by the coordinator which files a case needs;
  // `untried` describes them. A file that is missing is a failure() like others.
  static registry of_files(const std::vector<std::filesystem::path>& files, trust t = trust::tried);
  // The same components, but find() loads the file of the one that it returns. For a process that can be spared: a
  // child of ask(), or a test.
  registry loading() const;
  ~registry();
  registry(registry&&) noexcept;

  // Valid as long as the registry; by folder, file, and the plugin's own order.
  const std::vector<component>& components() const;
  const std::vector<unusable>& failures() const;
  const std::vector<shadowed>& hidden() const;
  // find() without loading.
  const component& described(enum kind k, std::string_view id) const;
  // Throws regatta::failure (exit code 3) with what is there, a near name, and the failures that may be why. The
  // reference is valid as long as the registry.
  const component& find(enum kind k, std::string_view id) const;

private:
  struct state;
  std::unique_ptr<state> state_;
  explicit registry(std::unique_ptr<state> s);
};

// Where plugins are searched: --plugin-path, REGATTA_PLUGIN_PATH (folders with ':' between), experiment.plugin_path,
// then the folder beside the program (../lib/regatta) if there is one. Throws failure (exit code 2) where a folder that
// was asked for does not exist.
std::vector<std::filesystem::path> plugin_folders(const std::vector<std::string>& command_line,
                                                  const std::vector<std::string>& experiment = {});

// Parameter values in the order of the component's table, with what they point to. Movable; `data()` stays valid.
class parameter_values {
public:
  // Parameters that are not chosen take their defaults. Throws failure (exit code 2) where a value does not fit, one
  // that must be given is not, or a name is unknown: config checks before, with the place in the file.
  parameter_values(const component& c, const std::map<std::string, nlohmann::json>& chosen);
  ~parameter_values();
  parameter_values(parameter_values&&) noexcept;
  const rg_value* data() const;

private:
  struct storage;
  std::unique_ptr<storage> storage_;
};

// SHA-256 of the file, in hex: results record which binary ran.
std::string sha256_of(const std::filesystem::path& file);

} // namespace regatta

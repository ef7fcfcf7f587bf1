// SPDX-License-Identifier: Apache-2.0
//
// The plugins there are. Folders are searched in order; every .so in them is looked at (ELF headers first, then loaded
// once in a child process, so that one which crashes while loading cannot take us along), checked, and kept loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
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
std::string_view name_of(kind k); // "model"

// A component, checked: strings are not null, the parameter table is consistent, required functions are there.
struct component {
  enum kind kind;
  std::string id, summary;
  std::string plugin_name, plugin_version;
  std::filesystem::path file;
  std::vector<rg_param> parameters;         // in the plugin's order, which is that of values
  const void* (*extension)(const char* id); // may be null
  // Versioned copies, null slots where the plugin's are missing; the one of the kind counts.
  rg_model model;
  rg_executor executor;
  rg_model executor_model;
  rg_transport transport;
  rg_strategy strategy;
};

// A file that could not be used, and why: one line, no newline.
struct unusable {
  std::filesystem::path file;
  std::string reason;
};

class registry {
public:
  // Loads every plugin under the folders, first come first served per (kind, id); two files of one folder with the same
  // id are both refused. Folders that do not exist are errors if `required`.
  explicit registry(const std::vector<std::filesystem::path>& folders);
  // Loads just these files: what a rank does, told by the coordinator what the case needs.
  static registry of_files(const std::vector<std::filesystem::path>& files);
  ~registry();
  registry(registry&&) noexcept;

  const std::vector<component>& components() const;
  const std::vector<unusable>& failures() const;
  // Throws regatta::failure (exit code 3) with what is there, a near name, and the failures that may be why.
  const component& find(enum kind k, std::string_view id) const;

private:
  struct state;
  std::unique_ptr<state> state_;
  explicit registry(std::unique_ptr<state> s);
};

// experiment.plugin_path, --plugin-path and REGATTA_PLUGIN_PATH, then the folder beside the program (../lib/regatta).
std::vector<std::filesystem::path> plugin_folders(const std::vector<std::string>& asked);

// Parameter values in the order of the component's table, with what they point to. Movable; `data()` stays valid.
class parameter_values {
public:
  // `chosen` must hold a value of the right type for every parameter (config checks and completes it).
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

// SPDX-License-Identifier: Apache-2.0
//
// Components for the tests of the configuration, which need no plugins.
#pragma once

#include "base/failure.hpp"
#include "config/load.hpp"
#include "temporary_folder.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

inline rg_param parameter(const char* name, std::uint32_t type, const char* default_value) {
  rg_param p{};
  p.struct_size = sizeof p;
  p.type = type;
  p.name = name;
  p.help = "for a test";
  p.default_value = default_value;
  return p;
}

inline rg_param bounded(rg_param p, double min, double max, std::uint32_t unit = RG_UNIT_NONE) {
  p.min = min;
  p.max = max;
  p.unit = unit;
  return p;
}

inline rg_param one_of(rg_param p, const char* const* choices) {
  p.choices = choices;
  return p;
}

inline const regatta::catalogue& test_catalogue() {
  using regatta::kind;
  static const char* const inputs[] = {"cifar10", "flowers", nullptr};
  static const std::map<std::pair<kind, std::string>, std::vector<rg_param>> all{
      {{kind::model, "mlp"},
       {parameter("hidden", RG_PARAM_INTS, "[256, 256]"), parameter("dropout", RG_PARAM_FLOAT, "0.5")}},
      {{kind::model, "vgg16"},
       {one_of(parameter("input", RG_PARAM_STRING, "\"cifar10\""), inputs),
        parameter("batch_norm", RG_PARAM_BOOL, "true")}},
      {{kind::strategy, "none"}, {}},
      {{kind::strategy, "allreduce"},
       {bounded(parameter("bucket", RG_PARAM_INT, "4194304"), 1024, 1 << 30, RG_UNIT_BYTES)}},
      {{kind::strategy, "sync_ps"},
       {bounded(parameter("bucket", RG_PARAM_INT, "1048576"), 1024, 1 << 30, RG_UNIT_BYTES)}},
      {{kind::strategy, "geo_ps"}, {bounded(parameter("k", RG_PARAM_INT, nullptr), 1, 10000)}},
      {{kind::transport, "shm"}, {}},
      {{kind::transport, "tcp"}, {bounded(parameter("linger", RG_PARAM_INT, "0"), 0, 1e9, RG_UNIT_NANOSECONDS)}},
      {{kind::transport, "shaped"},
       {bounded(parameter("rate", RG_PARAM_FLOAT, "1e9"), 1, 1e15, RG_UNIT_BITS_PER_SECOND)}},
  };
  static const regatta::catalogue c = [] {
    regatta::catalogue made;
    made.ids = [](kind k) {
      std::vector<std::string> ids;
      for (const auto& [key, table] : all)
        if (key.first == k) ids.push_back(key.second);
      return ids;
    };
    made.parameters = [](kind k, std::string_view id) -> const std::vector<rg_param>* {
      const auto found = all.find({k, std::string(id)});
      return found == all.end() ? nullptr : &found->second;
    };
    made.ids_in = [](kind k, const std::filesystem::path& file) {
      const std::string name = file.filename().string();
      if (k == kind::model && name == "vgg16.so") return std::vector<std::string>{"vgg16"};
      if (k == kind::strategy && name == "two.so") return std::vector<std::string>{"none", "allreduce"};
      return std::vector<std::string>();
    };
    made.unusable = {"/plugins/broken.so: no ELF file"};
    return made;
  }();
  return c;
}

// In memory where there is such a place: on a busy disk every small file takes milliseconds.
struct scratch_folder : regatta::test::temporary_folder {
  scratch_folder()
      : temporary_folder(std::filesystem::is_directory("/dev/shm") ? "/dev/shm"
                                                                   : std::filesystem::temp_directory_path()) {}
};

inline regatta::experiment load(const std::string& text, const regatta::overrides& o = {}) {
  const scratch_folder folder;
  return regatta::load_experiment(folder.write("f.toml", text), o, test_catalogue());
}

// Returns the error of load_experiment, with the file called "f.toml"; "" if it succeeds.
inline std::string complaint(const std::string& text, const regatta::overrides& o = {},
                             regatta::exit_code* code = nullptr) {
  const scratch_folder folder;
  const auto file = folder.write("f.toml", text);
  try {
    regatta::load_experiment(file, o, test_catalogue());
    return {};
  } catch (const regatta::failure& f) {
    if (code) *code = f.code();
    std::string said = f.what();
    const std::string prefix = folder.path.string() + "/";
    for (std::size_t at; (at = said.find(prefix)) != std::string::npos;) said.erase(at, prefix.size());
    return said;
  }
}

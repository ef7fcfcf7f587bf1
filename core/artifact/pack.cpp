// SPDX-License-Identifier: Apache-2.0
#include "artifact/artifact.hpp"
#include "artifact/portable.hpp"
#include "artifact/sources.hpp"
#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "config/toml_document.hpp"
#include "registry/sha256.hpp"
#include "report/stored_document.hpp"

#include <algorithm>
#include <optional>
#include <system_error>

#include <fmt/format.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string sum_of_bytes(const std::string& bytes) {
  sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

class packer {
public:
  explicit packer(const fs::path& folder) : stored_(read_stored(folder.string(), {"regatta.result/1"})) {
    if (stored_.document.value("simulated", false))
      throw failure(exit_code::usage, fmt::format("{}: expected a measured result, got a simulated one: who has its "
                                                  "files repeats it with `regatta simulate`",
                                                  folder.string()));
  }

  packed_artifact pack(const std::vector<fs::path>& sources) {
    add_toml();
    packed_.files.push_back({"result.json", document_text(stored_.document)});
    json plugins = json::array();
    for (const json& plugin : context().at("plugins")) plugins.push_back(packed_plugin(plugin, sources.empty()));
    for (const fs::path& path : sources) add_sources(path);
    json card = json::object();
    for (const char* member : {"command", "date", "regatta", "git", "build", "hosts", "data"})
      card[member] = context().value(member, json());
    json sums = json::object();
    for (const archived_file& file : packed_.files) sums[file.name] = sum_of_bytes(file.content);
    const json manifest = {{"schema", "regatta.artifact/1"},
                           {"run_card", card},
                           {"plugins", plugins},
                           {"claims", stored_.document.value("claims", json::array())},
                           {"files", sums}};
    packed_.files.push_back({"artifact.json", document_text(manifest)});
    return std::move(packed_);
  }

private:
  const json& context() const { return stored_.document.at("context"); }
  fs::path folder() const { return stored_.file.parent_path(); }

  std::string file_of_result(const char* name) {
    if (auto text = content_of(folder() / name)) return *text;
    throw failure(exit_code::usage,
                  fmt::format("{}: is missing; a result of this version of regatta run has it beside "
                              "result.json: run the experiment's file again (a run with --again has none)",
                              (folder() / name).string()));
  }

  void add_toml() {
    try {
      packed_.files.push_back({"experiment.toml", portable_toml(file_of_result("resolved-all.toml"))});
    } catch (const toml_error& e) {
      throw failure(exit_code::usage, fmt::format("{}:{}:{}: error: {}", (folder() / "resolved-all.toml").string(),
                                                  e.at().line, e.at().column, e.what()));
    }
    packed_.files.push_back({"as-written.toml", file_of_result("as-written.toml")});
    std::error_code error;
    for (fs::directory_iterator at(folder(), error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (name.starts_with("resolved") && name.ends_with(".toml") && name != "resolved-all.toml")
        packed_.files.push_back({name, file_of_result(name.c_str())});
    }
  }

  // Packs the file of a plugin, and its sources if they are to be found.
  json packed_plugin(const json& plugin, bool find_sources) {
    const fs::path path = plugin.at("path").get<std::string>();
    const std::string name =
        fmt::format("{} {}", plugin.at("kind").get<std::string>(), plugin.at("id").get<std::string>());
    json packed = {{"file", nullptr}};
    for (const char* member : {"kind", "id", "version", "sha256", "built_in"}) packed[member] = plugin.at(member);
    if (plugin.at("built_in") == true) return packed;
    const std::optional<std::string> binary = content_of(path);
    if (binary && json(sum_of_bytes(*binary)) == plugin.at("sha256"))
      packed["file"] = add_binary(path.filename().string(), *binary);
    else
      packed_.notes.push_back(fmt::format("{}: {} {}: its binary is left out", name, path.string(),
                                          binary ? "has changed since the run" : "cannot be read"));
    if (!find_sources) return packed;
    const auto found = sources_of(path);
    if (!found)
      packed_.notes.push_back(
          fmt::format("{}: no sources found beside {}; name them with --sources", name, path.string()));
    else if (std::ranges::count(added_, *found) == 0)
      try {
        add_sources(*found);
      } catch (const failure& e) {
        packed_.notes.push_back(fmt::format("{}: its sources are left out: {}", name, e.what()));
      }
    return packed;
  }

  // Returns the name of a binary in the archive. Several components may be in one file, and files of different folders
  // may have one name.
  std::string add_binary(const std::string& file, const std::string& content) {
    std::string name = "plugins/" + file;
    for (int number = 2;; ++number) {
      const auto same = std::ranges::find(packed_.files, name, &archived_file::name);
      if (same == packed_.files.end()) break;
      if (same->content == content) return name;
      name = fmt::format("plugins/{}/{}", number, file);
    }
    packed_.files.push_back({name, content});
    return name;
  }

  void add_sources(const fs::path& path) {
    for (const fs::path& before : added_)
      if (source_name(before) == source_name(path))
        throw failure(exit_code::usage,
                      fmt::format("{} and {}: expected sources with different names", before.string(), path.string()));
    for (archived_file& file : source_files(path)) packed_.files.push_back(std::move(file));
    added_.push_back(path);
  }

  stored_document stored_;
  packed_artifact packed_;
  std::vector<fs::path> added_; // sources
};

} // namespace

packed_artifact pack(const fs::path& folder, const std::vector<fs::path>& sources) try {
  return packer(folder).pack(sources);
} catch (const json::exception& e) {
  throw failure(exit_code::usage, fmt::format("{}: expected a result of this version of regatta run: {}",
                                              one_line(folder.string()), one_line(e.what())));
}

} // namespace regatta

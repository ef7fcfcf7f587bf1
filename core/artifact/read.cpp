// SPDX-License-Identifier: Apache-2.0
#include "artifact/artifact.hpp"
#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "registry/sha256.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;

failure refused_artifact(const std::string& why) {
  return failure(exit_code::usage, why);
}

const std::string& content_in(const artifact& a, const std::string& name) {
  const auto found = std::ranges::find(a.files, name, &archived_file::name);
  if (found == a.files.end())
    throw refused_artifact(fmt::format("expected an artifact, which has {}, got an archive without", name));
  return found->content;
}

void check_sums(const artifact& a, const json& sums) {
  for (const auto& [name, sum] : sums.items()) {
    sha256 actual;
    actual.add(content_in(a, name));
    if (json(actual.hex()) != sum)
      throw refused_artifact(fmt::format("{} has another SHA-256 than artifact.json lists", one_line(name)));
  }
  for (const archived_file& file : a.files)
    if (file.name != "artifact.json" && !sums.contains(file.name))
      throw refused_artifact(fmt::format("{} is not listed in artifact.json", one_line(file.name)));
}

// Tables print names of members and texts of claims: without characters that a terminal would obey.
void check_texts(const json& value) {
  if (value.is_string() && value != cleaned(value.get_ref<const std::string&>()))
    throw refused_artifact("result.json has a text with control characters: " + one_line(value.get<std::string>()));
  if (!value.is_structured()) return;
  for (const auto& [name, member] : value.items()) {
    if (value.is_object() && name != cleaned(name))
      throw refused_artifact("result.json has a name with control characters: " + one_line(name));
    check_texts(member);
  }
}

artifact_plugin plugin_in(const artifact& a, const json& listed) {
  artifact_plugin p;
  for (const auto& [member, name] :
       {std::pair{&p.kind, "kind"}, {&p.id, "id"}, {&p.version, "version"}, {&p.sha256, "sha256"}})
    *member = one_line(listed.at(name).get<std::string>());
  p.built_in = listed.at("built_in").get<bool>();
  if (listed.at("file").is_null()) return p;
  p.file = listed["file"].get<std::string>();
  if (!p.file.starts_with("plugins/") || !p.file.ends_with(".so"))
    throw refused_artifact(fmt::format("expected plugins/FILE.so as the file of a plugin, got {}", one_line(p.file)));
  sha256 actual;
  actual.add(content_in(a, p.file));
  if (actual.hex() != p.sha256)
    throw refused_artifact(fmt::format("{} has another SHA-256 than the run's", one_line(p.file)));
  return p;
}

} // namespace

artifact read_artifact(std::string_view bytes) {
  artifact a;
  a.files = read_archive(bytes);
  try {
    const json manifest = parse_json(content_in(a, "artifact.json"));
    if (manifest.at("schema") != "regatta.artifact/1")
      throw refused_artifact(
          fmt::format("expected schema regatta.artifact/1, got {}", one_line(manifest["schema"].dump())));
    check_sums(a, manifest.at("files"));
    a.run_card = manifest.at("run_card");
    a.experiment = content_in(a, "experiment.toml");
    a.result = parse_json(content_in(a, "result.json"));
    if (a.result.at("schema") != "regatta.result/1" || !a.result.at("results").is_array())
      throw refused_artifact("result.json is not of schema regatta.result/1");
    check_texts(a.result.value("claims", json::array()));
    for (const json& entry : a.result["results"]) check_texts(entry.at("case"));
    for (const json& plugin : manifest.at("plugins")) a.plugins.push_back(plugin_in(a, plugin));
  } catch (const failure& e) { // parse_json() throws failure (run)
    throw refused_artifact(e.what());
  } catch (const json::exception& e) {
    throw refused_artifact(fmt::format("expected an artifact of this version: {}", one_line(e.what())));
  }
  constexpr std::string_view build_file = "/CMakeLists.txt";
  for (const archived_file& file : a.files)
    if (split(file.name, '/').size() == 3 && file.name.starts_with("sources/") && file.name.ends_with(build_file))
      a.sources.push_back(file.name.substr(0, file.name.size() - build_file.size()));
  return a;
}

} // namespace regatta

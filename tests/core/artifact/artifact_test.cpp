// SPDX-License-Identifier: Apache-2.0
#include "artifact/artifact.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "artifact/portable.hpp"
#include "artifact/sources.hpp"
#include "base/failure.hpp"
#include "config/toml_document.hpp"
#include "registry/sha256.hpp"
#include "temporary_folder.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

std::string sum_of(const std::string& bytes) {
  sha256 sum;
  sum.add(bytes);
  return sum.hex();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The folder of a result whose strategy is in mine.so.
void write_result(const test::temporary_folder& folder) {
  folder.write("mine/mine.so", "binary");
  folder.write("mine/mine.c", "int x;\n");
  const json plugins = json::array(
      {{{"kind", "model"}, {"id", "mlp"}, {"version", "1"}, {"sha256", "0"}, {"built_in", true}, {"path", "/x/mlp.so"}},
       {{"kind", "strategy"},
        {"id", "mine"},
        {"version", "2"},
        {"sha256", sum_of("binary")},
        {"built_in", false},
        {"path", (folder.path / "mine/mine.so").string()}}});
  const json result = {{"schema", "regatta.result/1"},
                       {"context", {{"command", "regatta run x.toml"}, {"plugins", plugins}, {"hosts", json::array()}}},
                       {"claims", json::array()},
                       {"results", json::array()}};
  folder.write("r/result.json", result.dump());
  folder.write("r/resolved-all.toml",
               "[experiment]\nplugin_path = [\"/home/me\"]\n[data]\npath = \"/home/me/cifar\"\n");
  folder.write("r/as-written.toml", "# by hand\n");
  folder.write("r/resolved.toml", "[train]\n");
  folder.write("r/records.jsonl", "not packed");
}

std::vector<std::string> names(const std::vector<archived_file>& files) {
  std::vector<std::string> all;
  for (const archived_file& f : files) all.push_back(f.name);
  std::ranges::sort(all);
  return all;
}

std::string why_refused(const std::vector<archived_file>& files) {
  try {
    read_artifact(write_archive(files));
  } catch (const failure& f) {
    CHECK(f.code() == exit_code::usage);
    return f.what();
  }
  return "";
}

} // namespace

TEST_CASE("an artifact has the TOML, the result, and the binaries and sources of foreign plugins") {
  const test::temporary_folder folder;
  write_result(folder);
  const packed_artifact packed = pack(folder.path / "r", {});
  CHECK(packed.notes.empty());
  CHECK(names(packed.files) == std::vector<std::string>{"artifact.json", "as-written.toml", "experiment.toml",
                                                        "plugins/mine.so", "resolved.toml", "result.json",
                                                        "sources/mine/CMakeLists.txt", "sources/mine/mine.c"});
  const artifact a = read_artifact(write_archive(packed.files));
  CHECK(a.run_card.at("command") == "regatta run x.toml");
  CHECK(a.experiment == "[experiment]\n\n[data]\npath = \"data/cifar\"\n");
  REQUIRE(a.plugins.size() == 2);
  CHECK(a.plugins[0].built_in);
  CHECK(a.plugins[0].file == "");
  CHECK(a.plugins[1] == artifact_plugin{"strategy", "mine", "2", sum_of("binary"), false, "plugins/mine.so"});
  CHECK(a.sources == std::vector<std::string>{"sources/mine"});
  const auto build = std::ranges::find(a.files, "sources/mine/CMakeLists.txt", &archived_file::name);
  CHECK(has(build->content, "regatta_add_plugin(mine mine.c)\n"));
}

TEST_CASE("a binary that has changed since the run is left out, and said so") {
  const test::temporary_folder folder;
  write_result(folder);
  folder.write("mine/mine.so", "another");
  const packed_artifact packed = pack(folder.path / "r", {});
  REQUIRE(packed.notes.size() == 1);
  CHECK(has(packed.notes[0], "mine.so has changed since the run: its binary is left out"));
  CHECK(read_artifact(write_archive(packed.files)).plugins[1].file == "");
}

TEST_CASE("sources are found where CMake built the plugin; build folders, hidden files and links are left out") {
  const test::temporary_folder folder;
  folder.write("p/CMakeLists.txt", "project(p)\n");
  folder.write("p/src/p.cpp", "");
  folder.write("p/.git/config", "secret");
  folder.write("p/.env", "secret");
  folder.write("p/build/CMakeCache.txt",
               "# a comment\nCMAKE_HOME_DIRECTORY:INTERNAL=" + (folder.path / "p").string() + "\n");
  folder.write("p/build/lib/p.so", "");
  folder.write("secret", "secret");
  std::filesystem::create_symlink(folder.path / "secret", folder.path / "p/link");
  CHECK(sources_of(folder.path / "p/build/lib/p.so") == folder.path / "p");
  CHECK(names(source_files(folder.path / "p")) ==
        std::vector<std::string>{"sources/p/CMakeLists.txt", "sources/p/src/p.cpp"});
  CHECK_FALSE(sources_of(folder.path / "secret.so"));
  CHECK_THROWS_AS(source_files(folder.path / "nothing"), failure);
  for (int i = 0; i < 501; ++i) folder.write("many/" + std::to_string(i) + ".c", "");
  CHECK_THROWS_WITH(source_files(folder.path / "many"), doctest::Contains("got more than 500 files"));
}

TEST_CASE("an archive that is no artifact, or was changed, is refused") {
  const test::temporary_folder folder;
  write_result(folder);
  const std::vector<archived_file> files = pack(folder.path / "r", {}).files;
  const auto with = [&](const std::string& name, const std::string& content) {
    std::vector<archived_file> changed = files;
    const auto found = std::ranges::find(changed, name, &archived_file::name);
    if (found == changed.end())
      changed.push_back({name, content});
    else
      found->content = content;
    return changed;
  };
  CHECK(why_refused(files) == "");
  CHECK(has(why_refused({{"a", "b"}}), "which has artifact.json"));
  CHECK(why_refused(with("experiment.toml", "x = 1")) ==
        "experiment.toml has another SHA-256 than artifact.json lists");
  CHECK(why_refused(with("plugins/evil.so", "x")) == "plugins/evil.so is not listed in artifact.json");
  CHECK(has(why_refused(with("artifact.json", "{")), "JSON"));
  CHECK(has(why_refused(with("artifact.json", "{}")), "schema"));
  const auto with_result = [&](const json& part) {
    json result = json::parse(std::ranges::find(files, "result.json", &archived_file::name)->content);
    result.update(part);
    std::vector<archived_file> changed = with("result.json", result.dump());
    json sums = json::parse(std::ranges::find(files, "artifact.json", &archived_file::name)->content);
    sums["files"]["result.json"] = sum_of(result.dump());
    std::ranges::find(changed, "artifact.json", &archived_file::name)->content = sums.dump();
    return changed;
  };
  CHECK(why_refused(with_result(json::object())) == "");
  CHECK(has(why_refused(with_result({{"claims", {{{"text", "a\x1b[2Jb"}}}}})), "a text with control characters"));
  CHECK(has(why_refused(with_result({{"results", {{{"case", {{"a\nb", 1}}}}}}})), "a name with control characters"));
  json manifest = json::parse(std::ranges::find(files, "artifact.json", &archived_file::name)->content);
  manifest["plugins"][1]["file"] = "result.json";
  CHECK(has(why_refused(with("artifact.json", manifest.dump())), "expected plugins/FILE.so as the file of a plugin"));
  manifest["plugins"][1]["file"] = "plugins/mine.so";
  manifest["plugins"][1]["sha256"] = "0";
  CHECK(has(why_refused(with("artifact.json", manifest.dump())), "has another SHA-256 than the run's"));
}

TEST_CASE("the TOML of an artifact has no paths of the machine that wrote it") {
  const std::string whole = R"([experiment]
name = "x"
plugin_path = ["/a/mine.so"]
[data]
path = "/a/cifar/"
[sweep]
[[sweep.zip]]
"data.path" = ["/a/cifar/", "/b/cifar"]
[[claim]]
left = { "data.path" = "/b/cifar" }
metric = "efficiency"
at_least = 0.5
)";
  const std::string text = portable_toml(whole);
  CHECK_FALSE(has(text, "/a/"));
  CHECK_FALSE(has(text, "plugin_path"));
  CHECK(has(text, "path = \"data/cifar\"\n"));
  CHECK(has(text, "\"data.path\" = [\"data/cifar\", \"data/cifar-2\"]\n"));
  CHECK(has(text, "left = { \"data.path\" = \"data/cifar-2\" }\n"));
  CHECK(unsafe_in(text, {}).empty());
}

TEST_CASE("the TOML of an artifact must not run or write anything outside of its folder") {
  const auto why = [](const std::string& toml, const std::vector<std::string>& set = {}) {
    const auto found = unsafe_in(toml, set);
    return found.empty() ? std::string() : found.front();
  };
  CHECK(why("[model]\nplugin = \"mlp\"\n") == "");
  CHECK(why("[model]\nplugin = \"/tmp/evil.so\"\n") ==
        "experiment.toml:2:10: model.plugin = \"/tmp/evil.so\": expected the id of a plugin, not a file");
  CHECK(has(why("strategy.plugin = \"evil.so\"\n"), "expected the id of a plugin"));
  CHECK(has(why("[sweep]\n\"strategy.plugin\" = [\"a\", \"./evil\"]\n"), "expected the id of a plugin"));
  CHECK(has(why("[sweep]\nstrategy.plugin = [\"./evil\"]\n"), "expected the id of a plugin"));
  CHECK(has(why("[[sweep.zip]]\ntransport = { plugin = [\"./evil\"] }\n"), "expected the id of a plugin"));
  CHECK(has(why("[experiment]\nplugin_path = [\"/tmp\"]\n"), "must not name plugins"));
  CHECK(has(why("[data]\npath = \"/home/me/.ssh\"\n"), "expected a path within the folder"));
  CHECK(has(why("[data]\nevaluation_path = \"a/../../b\"\n"), "expected a path within the folder"));
  CHECK(has(why("[data]\nproducer = \"rm -rf /\"\n"), "a command of the artifact is not run"));
  CHECK(why("[data]\nproducer = \"rm -rf /\"\n", {"data.producer=mine"}) == "");
  CHECK(has(why("[data\n"), "experiment.toml:1:"));
}

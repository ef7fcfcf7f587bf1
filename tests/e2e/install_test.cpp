// SPDX-License-Identifier: Apache-2.0
//
// Work without the source tree: install, move the installation, build plugins of every kind against it, and compare
// them in a run.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "json.hpp"
#include "temporary_folder.hpp"
#include <sys/wait.h>

namespace fs = std::filesystem;
using namespace regatta::test;

namespace {

std::string quoted(const fs::path& p) {
  return "'" + p.string() + "'";
}

std::string contents(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Runs a line of shell; its exit code, and in `log` all that it said. No folder or compiler flags but those given here
// find their way into it.
int run(const std::string& line, const fs::path& log) {
  const std::string clean = "env -u REGATTA_PLUGIN_PATH -u CXXFLAGS -u CFLAGS -u LDFLAGS -u CMAKE_PREFIX_PATH ";
  const int status = std::system((clean + line + " >" + quoted(log) + " 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_CASE("plugins built against a moved installation run in it, all kinds together") {
  const temporary_folder folder;
  const fs::path log = folder.path / "log", prefix = folder.path / "moved here", examples = folder.path / "examples";
  const std::string cmake = REGATTA_CMAKE;

  REQUIRE(run(cmake + " --install " REGATTA_BUILD " --prefix " + quoted(folder.path / "first"), log) == 0);
  fs::rename(folder.path / "first", prefix);
  for (const char* file :
       {"bin/regatta", "lib/regatta/allreduce.so", "lib/regatta/tcp.so", "include/regatta/abi.h",
        "lib/cmake/regatta/regatta-config.cmake", "lib/pkgconfig/regatta.pc", "include/regatta/ext/graph.h",
        "share/doc/regatta/docs/conformance.md", "share/doc/regatta/LICENSE", "share/doc/regatta/docs/README.md",
        "share/doc/regatta/examples/custom_strategy/tree.cpp"}) {
    CAPTURE(file);
    CHECK(fs::exists(prefix / file));
  }
  // Every link between installed pages leads to a file.
  std::size_t links = 0;
  for (const auto& page : fs::recursive_directory_iterator(prefix / "share/doc/regatta")) {
    if (page.path().extension() != ".md") continue;
    const std::string text = contents(page.path());
    const std::regex link("\\]\\(([^)#:\\s]+)(#[^)]*)?\\)");
    for (auto l = std::sregex_iterator(text.begin(), text.end(), link); l != std::sregex_iterator(); ++l, ++links)
      CHECK_MESSAGE(fs::exists(page.path().parent_path() / (*l)[1].str()), page.path().string()
                                                                               << ": " << (*l)[1].str());
  }
  CHECK(links > 50);

  // The example files expect each project in a separate folder, built in its folder `build`.
  fs::copy(REGATTA_SOURCE "/examples", examples, fs::copy_options::recursive);
  for (const char* name :
       {"custom_model", "custom_transport", "custom_strategy", "custom_compressor", "custom_executor"}) {
    CAPTURE(name);
    const fs::path project = examples / name;
    fs::remove_all(project / "build");
    const int configured =
        run(cmake + " -S " + quoted(project) + " -B " + quoted(project / "build") +
                " -G '" REGATTA_GENERATOR "' " REGATTA_TOOLS " -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH=" +
                quoted(prefix),
            log);
    REQUIRE_MESSAGE(configured == 0, contents(log));
    const int built = run(cmake + " --build " + quoted(project / "build"), log);
    REQUIRE_MESSAGE(built == 0, contents(log));
  }

  // Without CMake: regatta.pc finds the headers by its own place.
  REQUIRE(contents(prefix / "lib/pkgconfig/regatta.pc").find("prefix=${pcfiledir}/../..\n") != std::string::npos);
  // As `cc -std=c99 star.c $(pkg-config --cflags --libs regatta)`, on a machine without pkg-config.
  const auto flags = [&](const std::string& key) {
    const std::string text = contents(prefix / "lib/pkgconfig/regatta.pc");
    const std::size_t at = text.find("\n" + key + ": ") + key.size() + 3;
    return std::regex_replace(std::regex_replace(text.substr(at, text.find('\n', at) - at),
                                                 std::regex("\\$\\{includedir\\}"), quoted(prefix / "include")),
                              std::regex("\\$\\{prefix\\}"), quoted(prefix));
  };
  const int compiled = run("cc -std=c99 " + quoted(examples / "custom_strategy/star.c") + " " + flags("Cflags") + " " +
                               flags("Libs") + " -o " + quoted(folder.path / "star.so"),
                           log);
  REQUIRE_MESSAGE(compiled == 0, contents(log));

  // Another package installs its plugins where regatta.pc says, and users see them.
  REQUIRE(contents(prefix / "lib/pkgconfig/regatta.pc").find("plugindir=${prefix}/lib/regatta/plugins.d\n") !=
          std::string::npos);
  REQUIRE(fs::is_directory(prefix / "lib/regatta/plugins.d"));
  fs::copy(folder.path / "star.so", prefix / "lib/regatta/plugins.d");
  REQUIRE(run("env -u REGATTA_PLUGIN_PATH " + quoted(prefix / "bin/regatta") + " list strategies", log) == 0);
  CHECK(contents(log).find("star") != std::string::npos);
  fs::remove(prefix / "lib/regatta/plugins.d/star.so");

  // From the installation to a table with a plugin of one's own: three commands.
  const std::string with_path = "PATH=" + quoted(prefix / "bin") + ":\"$PATH\" ",
                    in = "cd " + quoted(folder.path) + " && ";
  const auto must = [&](const std::string& line) {
    const int code = std::system(("(" + in + "env -u REGATTA_PLUGIN_PATH -u CMAKE_PREFIX_PATH " + with_path + line +
                                  ") >" + quoted(log) + " 2>&1")
                                     .c_str());
    REQUIRE_MESSAGE(code == 0, line << contents(log));
  };
  fs::create_directory(folder.path / "lenet"); // an empty folder may be there
  must("regatta new model lenet");
  must("sh -c '! regatta new model lenet'"); // the files are not replaced
  CHECK(contents(log).find("lenet: is not empty: choose another NAME") != std::string::npos);
  must(cmake + " -S lenet -B lenet/build " REGATTA_TOOLS " -G '" REGATTA_GENERATOR "' && " + cmake +
       " --build lenet/build");
  must("regatta run lenet/lenet.toml --out table");
  CHECK(contents(log).find("lenet") != std::string::npos);
  const auto table = parsed(contents(folder.path / "table/result.json"));
  REQUIRE(table["results"].size() == 2);
  for (const auto& r : table["results"]) CHECK(r["status"] == "ok");
  // The plugin by its file, and by its id out of the user's folder of plugins.
  std::ofstream(folder.path / "file.toml") << "[model]\nplugin = \"./lenet/build/lenet.so\"\n[cluster]\nworkers = 1\n"
                                              "[measure]\nwarmup = 1\nsteps = 2\nrepeats = 1\nbaseline = false\n";
  must("regatta run file.toml --out by_file");
  const fs::path own = folder.path / "home/.local/share/regatta/plugins";
  fs::create_directories(own);
  fs::copy_file(folder.path / "lenet/build/lenet.so", own / "lenet.so");
  must("env -u XDG_DATA_HOME HOME=" + quoted(folder.path / "home") +
       " regatta run file.toml --set model.plugin=lenet --out by_folder");
  for (const char* out : {"by_file", "by_folder"}) {
    CAPTURE(out);
    CHECK(parsed(contents(folder.path / out / "result.json"))["results"][0]["status"] == "ok");
  }
  // The other templates, compiled in a hurry: their test passes, and every case of their file runs.
  for (const std::string kind : {"strategy", "compressor", "transport", "executor"}) {
    const std::string mine = "mine_" + kind;
    must("regatta new " + kind + " " + mine);
    must(cmake + " -S " + mine + " -B " + mine +
         "/build -DCMAKE_BUILD_TYPE=Debug " REGATTA_TOOLS " -G '" REGATTA_GENERATOR "' && " + cmake + " --build " +
         mine + "/build");
    must(cmake + " -E chdir " + mine + "/build ctest --no-tests=error --output-on-failure");
    must("regatta run " + mine + "/" + mine + ".toml --set measure.seconds=0.1 --out table_" + kind);
    const auto results = parsed(contents(folder.path / ("table_" + kind) / "result.json"))["results"];
    CHECK(results.size() == 2);
    for (const auto& r : results) CHECK(r["status"] == "ok");
  }

  CHECK_MESSAGE(run(quoted(prefix / "bin/regatta") + " check --quick " + quoted(folder.path / "star.so"), log) == 0,
                contents(log));

  // Each of them passes the suite that came with the installation.
  for (const char* plugin :
       {"custom_model/build/custom_model.so", "custom_model/build/custom_regression.so",
        "custom_transport/build/custom_transport.so", "custom_strategy/build/custom_strategy.so",
        "custom_strategy/build/custom_strategy_c.so", "custom_compressor/build/custom_compressor.so",
        "custom_executor/build/custom_executor.so"}) {
    CAPTURE(plugin);
    const int checked = run(quoted(prefix / "bin/regatta") + " check --quick " + quoted(examples / plugin), log);
    CHECK_MESSAGE(checked == 0, contents(log));
  }

  // A graph and a model with its own step; a strategy in C++ and one in C; a transport.
  const fs::path out = folder.path / "out";
  const int code = run(quoted(prefix / "bin/regatta") + " run " + quoted(examples / "custom.toml") +
                           " --sweep model.plugin=residual_mlp,linear_regression --sweep strategy.plugin=tree,star"
                           " --set data.source=random --set measure.steps=5 --set measure.repeats=1"
                           " --set measure.baseline=false --out " +
                           quoted(out),
                       log);
  REQUIRE_MESSAGE(code == 0, contents(log));

  const auto result = parsed(contents(out / "result.json"));
  REQUIRE(result["results"].size() == 4);
  for (const auto& r : result["results"]) {
    CAPTURE(r["case"]);
    CHECK(r["status"] == "ok");
    CHECK(r["workers"] == 2);
    CHECK(r["replicas_identical"] == true);
    REQUIRE(r["loss"]["first"].is_number());
    REQUIRE(r["loss"]["last"].is_number());
    CHECK(std::isfinite(r["loss"]["last"].get<double>()));
    CHECK(r["bytes"]["sent_per_step"] != 0);
  }
  // The run used the files that were built and installed here, none of the build tree.
  for (const auto& p : result["context"]["plugins"]) {
    CAPTURE(p);
    const std::string path = fs::weakly_canonical(p["path"].get<std::string>()).string();
    CHECK((path.starts_with(fs::canonical(prefix).string()) || path.starts_with(fs::canonical(examples).string())));
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "folder.hpp"
#include "json.hpp"

#include "base/failure.hpp"
#include "cli/describe.hpp"
#include "cli/list.hpp"
#include "cli/plugin_folders.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <functional>

#include <sys/mman.h>
#include <unistd.h>

using namespace regatta;
using namespace regatta::test;

namespace {

// Returns the text that `f` prints to standard output.
std::string printed(const std::function<void()>& f) {
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO), file = ::memfd_create("printed", 0);
  REQUIRE(kept >= 0);
  REQUIRE(file >= 0);
  ::dup2(file, STDOUT_FILENO);
  try {
    f();
  } catch (...) {
    std::fflush(stdout);
    ::dup2(kept, STDOUT_FILENO);
    ::close(kept);
    ::close(file);
    throw;
  }
  std::fflush(stdout);
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
  std::string text(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), '\0');
  CHECK(::pread(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  ::close(file);
  return text;
}

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

int code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const failure& e) {
    return static_cast<int>(e.code());
  }
  return 0;
}

} // namespace

TEST_CASE("where plugins are searched, in order") {
  const folder a, b, c;
  ::setenv("REGATTA_PLUGIN_PATH", (":" + b.path.string() + ":").c_str(), 1);
  const auto found = plugin_folders({a.path.string()}, {c.path.string()});
  REQUIRE(found.size() >= 3); // the one beside the program may be there or not
  CHECK(found[0] == a.path);
  CHECK(found[1] == b.path);
  CHECK(found[2] == c.path);
  const folder home;
  const std::filesystem::path users = home.path / "regatta/plugins";
  std::filesystem::create_directories(users);
  ::setenv("XDG_DATA_HOME", home.path.c_str(), 1);
  const auto with_users = plugin_folders({a.path.string()}, {c.path.string()});
  REQUIRE(with_users.size() == found.size() + 1);
  CHECK(with_users[3] == users);
  ::unsetenv("XDG_DATA_HOME");
  ::setenv("REGATTA_PLUGIN_PATH", "/no/such/folder", 1);
  CHECK_THROWS_WITH(plugin_folders({}), "REGATTA_PLUGIN_PATH: /no/such/folder: no such folder or file");
  ::unsetenv("REGATTA_PLUGIN_PATH");
  CHECK_THROWS_WITH_AS(plugin_folders({}, {"/nowhere"}), "experiment.plugin_path: /nowhere: no such folder or file",
                       failure);
  CHECK_THROWS_AS(registry({"/nowhere"}), failure);
}

TEST_CASE("list: the plugins with their files, and the files that are not usable") {
  const folder f;
  f.add("good");
  int code = -1;
  auto text = printed([&] { code = list_verb({f.path}, std::nullopt, false); });
  CHECK(code == 0);
  CHECK(has(text, (f.path / "good.so").string()));
  CHECK(has(text, "a transport in C99"));
  CHECK(has(text, "models: none found"));

  const auto broken = f.write("broken.so", "no ELF");
  f.write("left-out.txt", "transport mpi: MPI was not found\n");
  text = printed([&] { code = list_verb({f.path}, kind::transport, false); });
  CHECK(has(text, "transport mpi: MPI was not found"));
  CHECK(code == 3);
  CHECK(has(text, broken.string() + ": not a shared object"));
  CHECK(text.find("models") == std::string::npos);

  const auto j = parsed(printed([&] { code = list_verb({f.path}, std::nullopt, true); }));
  CHECK(code == 3);
  CHECK(j["transports"][0]["id"] == "good");
  CHECK(j["transports"][0]["file"] == (f.path / "good.so").string());
  CHECK(j["models"].empty());
  CHECK(j["unusable"][0]["file"] == broken.string());
  CHECK(j["left_out"][0] == "transport mpi: MPI was not found");
  CHECK(j["folders"][0] == f.path.string());
}

TEST_CASE("describe: parameters and capabilities") {
  const folder f;
  f.add("good");
  const auto text = printed([&] { describe_verb({f.path}, "transport/good", false); });
  CHECK(has(text, "transport good: a transport in C99"));
  CHECK(has(text, "an integer from 1 to 64"));
  CHECK(has(text, "\"64KiB\""));
  CHECK(has(text, "independent"));
  const auto j = parsed(printed([&] { describe_verb({f.path}, "transports/good", true); }));
  CHECK(j["parameters"].size() == 9);
  CHECK(j["parameters"][1]["default"] == 4);
  CHECK(j["parameters"][1]["max"] == 64);
  CHECK(j["parameters"][2]["unit"] == "bytes");
  CHECK(j["parameters"][6]["choices"] == nlohmann::json({"eager", "rendezvous"}));
  CHECK(j["capabilities"]["memory"] == nlohmann::json({"host"}));
}

TEST_CASE("describe: a strategy's promises about weights and waiting") {
  const std::filesystem::path plugins = REGATTA_PLUGINS;
  const auto promises = [&](const std::string& id, const std::vector<std::string>& set = {}) {
    const auto can = parsed(printed([&] { describe_verb({plugins}, "strategy/" + id, true, set); })).at("capabilities");
    return can.at("same_weights").get<std::string>() + "; " + can.at("waits_for_the_slowest").get<std::string>();
  };
  CHECK(promises("sync_ps") == "after every step; in every step");
  CHECK(promises("async_ps") == "at the end; never");
  CHECK(promises("async_ps", {"bound=1"}) == "at the end; when 1 step ahead");
  CHECK(promises("async_ps", {"bound=4"}) == "at the end; when 4 steps ahead");
  CHECK(promises("local_sgd", {"k=8"}) == "at the end; once in 8 steps");
  CHECK(promises("geo_ps") == "not promised; never");
  CHECK(promises("dgc") == "after every step; in every step");
  for (const char* id : {"dgc", "sync_ps"}) {
    const auto can = parsed(printed([&] { describe_verb({plugins}, std::string("strategy/") + id, true, {}); }));
    CHECK(can.at("capabilities").at("lossy") == (std::string(id) == "dgc"));
  }
  const auto alike = parsed(printed([&] { describe_verb({plugins}, "strategy/sync_ps", true, {}); }));
  CHECK(alike.at("capabilities").at("symmetry") == "classes");
  CHECK(alike.at("capabilities").at("survives") == false);
  CHECK(has(printed([&] { describe_verb({plugins}, "strategy/async_ps", false, {"bound=4"}); }),
            "waits for the slowest    when 4 steps ahead"));
}

TEST_CASE("describe: wrong names and parameters, and a component that is not there, are refused") {
  const folder f;
  f.add("good");
  auto describe = [&](const std::string& name, const std::vector<std::string>& set = {}) {
    return code_of([&] { printed([&] { describe_verb({f.path}, name, false, set); }); });
  };
  CHECK(describe("good") == 2);
  CHECK(describe("transprt/good") == 2);
  CHECK(describe("transport/") == 3);
  CHECK(describe("model/good") == 3);
  CHECK(describe("transport/good", {"depth=65"}) == 2);
  CHECK(describe("transport/good", {"depth"}) == 2);
  CHECK(describe("transport/good", {"mode=rendezvous"}) == 0);
}

TEST_CASE("a component that throws where nothing may leave") {
  const folder f;
  f.add("throw_in_create");
  for (const std::string name : {"model/thrower", "strategy/thrower"}) {
    CHECK(code_of([&] { printed([&] { describe_verb({f.path}, name, false); }); }) == 3);
    CHECK_THROWS_WITH_AS(printed([&] { describe_verb({f.path}, name, false); }), doctest::Contains("gave up"), failure);
  }
}

TEST_CASE("describe counts every model's parameters, tables and operations") {
  struct one {
    const char* id;
    std::vector<std::string> set;
    std::uint64_t parameters, in_tables;
    double operations;
  };
  // Twice an encoder's 85.0 million weights by 128 places, thrice; its attention 4 x 128 x 128 x 768 in each of 12
  // layers; words predicted at 20 places.
  constexpr double bert = 3 * (2. * 12 * (12 * 768. * 768) * 128 + 12 * 4. * 128 * 128 * 768 +
                               2. * 20 * 768 * (30522 + 768) + 2. * 768 * (768 + 2));
  const one models[] = {
      {"vgg16", {}, 15254602, 0, 1.88e9},
      {"bert", {}, 110106428, 0, bert},
      {"ctr", {}, 10000010 + 431202, 10000010, 6. * 430000},
      {"simnet_bow", {}, 185804032 + 33024, 185804032, 6. * 3 * 128 * 128},
      {"word2vec", {}, 212784651, 212784651, 6. * 300 * 6},
      {"mlp", {"hidden=[10]"}, 3072 * 10 + 10 + 10 * 10 + 10, 0, 6. * (3072 * 10 + 10 * 10)},
      {"null", {}, 16 * 65536 / 4, 0, 0},
  };
  for (const one& m : models) {
    CAPTURE(m.id);
    const std::string name = std::string("model/") + m.id;
    const auto j = parsed(printed([&] { describe_verb({REGATTA_PLUGINS}, name, true, m.set); }));
    CHECK(j["network"]["parameters"] == m.parameters);
    CHECK(j["network"]["operations_per_sample"].get<double>() == doctest::Approx(m.operations).epsilon(0.002));
    std::uint64_t in_tables = 0;
    for (const auto& t : j["network"]["tables"]) in_tables += t["parameters"].get<std::uint64_t>();
    CHECK(in_tables == m.in_tables);
  }
  const auto text = printed([] { describe_verb({REGATTA_PLUGINS}, "model/word2vec", false); });
  CHECK(has(text, "212,784,651 parameters"));
  CHECK(has(text, "106,569,351 in the sparse table \"output\": 354,051 rows of 301"));
}

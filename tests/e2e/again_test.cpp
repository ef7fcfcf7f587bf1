// SPDX-License-Identifier: Apache-2.0
//
// regatta run --again: a stored result runs again from its run cards and is compared. --progress json.
#include "program.hpp"

#include "data/generate_datasets.hpp"

#include <vector>

using namespace regatta::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string two_strategies = small_experiment(12) + R"(
[strategy.sync_ps]
bucket = "64KiB"
[cluster]
workers = 2
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps"]
)";

json result_of(const temporary_folder& s, const std::string& folder) {
  return parsed(read(s.path / folder / "result.json"));
}

void store(const temporary_folder& s, const json& result, const std::string& folder) {
  fs::create_directories(s.path / folder);
  std::ofstream(s.path / folder / "result.json") << text_of(result);
}

} // namespace

TEST_CASE("a result runs again from itself alone, as it was, and is compared") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << two_strategies;
  REQUIRE(program(s, "run x.toml --progress never --out there/r").code == 0);
  const json before = result_of(s, "there/r");
  REQUIRE(before.at("context").at("cards").size() == 2);
  // Nothing but the result is left.
  store(s, before, "here");
  fs::remove_all(s.path / "there");
  fs::remove(s.path / "x.toml");

  const outcome all = program(s, "run --again here --progress never --out a");
  INFO(all.err);
  CHECK(all.code == 0);
  CHECK(has(all.out, "A: here (strategy allreduce)\nB: a/result.json (strategy allreduce)\n"));
  CHECK(has(all.out, "A: here (strategy sync_ps)\nB: a/result.json (strategy sync_ps)\n"));
  CHECK(has(all.out, "no setting, fingerprint or machine differs\n"));
  CHECK_FALSE(has(all.out, "differs: "));
  const json after = result_of(s, "a");
  for (const std::size_t i : {0, 1}) {
    CHECK(after.at("results")[i].at("fingerprint") == before.at("results")[i].at("fingerprint"));
    CHECK(after.at("results")[i].at("loss").at("curve") == before.at("results")[i].at("loss").at("curve"));
    CHECK(after.at("context").at("cards")[i] == before.at("context").at("cards")[i]);
  }

  const outcome one = program(s, "run --again here/result.json --case 2 --progress never --out b --format json");
  CHECK(one.code == 0);
  const json compared = parsed(one.out);
  CHECK(compared.at("schema") == "regatta.comparison/1");
  REQUIRE(compared.at("cases").size() == 1);
  CHECK(compared.at("cases")[0].at("b") == "b/result.json (strategy sync_ps)");
  CHECK(compared.at("cases")[0].at("differences").empty());
  REQUIRE(result_of(s, "b").at("results").size() == 1);
  CHECK(result_of(s, "b").at("results")[0].at("case").at("strategy.plugin") == "sync_ps");
  // A result of --again has run cards, too.
  CHECK(has(program(s, "run --again b --progress never --out c").out, "no setting, fingerprint or machine differs\n"));

  const outcome longer = program(s, "run --again here --case 1 --set measure.repeats=2 --progress never --out d");
  CHECK(longer.code == 0);
  CHECK(has(longer.out, "differs: measure.repeats: 1 -> 2\n"));
  CHECK(program(s, "run --again here --dry-run").code == 0);
}

TEST_CASE("a plugin that an option named is found where it was") {
  const temporary_folder s;
  fs::create_directories(s.path / "mine");
  fs::copy(REGATTA_BUILD "/tests/counting", s.path / "mine");
  std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"counting\"\n[data]\nsource = \"random\"\n[train]\n"
                                      "batch = 4\nkernels = \"fixed\"\n[measure]\nwarmup = 0\nsteps = 3\n"
                                      "repeats = 1\nbaseline = false\n";
  REQUIRE(program(s, "run x.toml --plugin-path mine --progress never --out r").code == 0);
  CHECK(program(s, "run --again r --progress never --out same").code == 0);
  fs::rename(s.path / "mine", s.path / "moved");
  const outcome gone = program(s, "run --again r --progress never --out gone");
  CHECK(gone.code == 3);
  CHECK(has(gone.err, "r: cannot run again: model counting (version "));
  CHECK(program(s, "run --again r --plugin-path moved --progress never --out found").code == 0);
}

TEST_CASE("run --again refuses or names each thing that is not as it was") {
  const temporary_folder s;
  regatta::generate_cifar10_like(s.path / "data", 20, 1);
  std::string toml = two_strategies;
  toml.replace(toml.find("source = \"random\""), 17, "source = \"dataset\"\nformat = \"cifar10\"\npath = \"data\"");
  std::ofstream(s.path / "x.toml") << toml;
  REQUIRE(program(s, "run x.toml --progress never --out r").code == 0);
  const json good = result_of(s, "r");
  const auto refusal = [&](const json& result, int code) {
    store(s, result, "changed");
    const outcome o = program(s, "run --again changed --progress never --out again");
    CHECK(o.code == code);
    CHECK(o.out.empty());
    CHECK_FALSE(fs::exists(s.path / "again/result.json"));
    return o.err;
  };

  json missing = good;
  for (json& plugin : missing["context"]["plugins"])
    if (plugin["id"] == "sync_ps") plugin.update({{"id", "gone"}, {"version", "7"}, {"path", "/x/gone.so"}});
  missing["results"][1]["case"]["strategy.plugin"] = missing["context"]["cards"][1]["case"]["strategy.plugin"] = "gone";
  CHECK(has(refusal(missing, 3),
            "changed: cannot run again: strategy gone (version 7) is missing; it was /x/gone.so, SHA-256 "));
  CHECK(program(s, "run --again changed --case 1 --progress never --out first").code == 0); // needs it not

  json old = good;
  old["context"].erase("cards");
  CHECK(has(refusal(old, 2), "changed: expected run cards (\"cards\" in its context), got none"));

  json changed = good;
  changed["context"]["data"][0]["sha256"] = "00";
  CHECK(has(refusal(changed, 2), "changed: cannot run again: the data " + (s.path / "data").string() +
                                     " have other contents (SHA-256 00, now "));

  json rebuilt = good;
  for (json& plugin : rebuilt["context"]["plugins"])
    if (plugin["id"] == "allreduce") plugin["sha256"] = "0123456789abcdef";
  rebuilt["context"]["program_sha256"] = "11";
  store(s, rebuilt, "rebuilt");
  const outcome o = program(s, "run --again rebuilt --case 1 --progress never --out warned");
  CHECK(o.code == 0);
  CHECK(has(o.err, "warning: strategy allreduce is another binary than in rebuilt (SHA-256 0123456789ab…, now "));
  CHECK(has(o.err, "warning: regatta is another binary than in rebuilt (SHA-256 11…, now "));
  CHECK(has(result_of(s, "warned").at("context").at("warnings").dump(), "another binary than in rebuilt"));

  for (const auto& [options, text] : std::vector<std::pair<std::string, std::string>>{
           {"--again r --case 3", "--case 3: expected a number from 1 to 2: r has 2 cases"},
           {"--again r --set strategy.plugin=none", "--set strategy.plugin: the cases of r differ in this key"},
           {"--again r x.toml", "excludes"},
           {"--again r --sweep train.batch=4,8", "excludes"},
           {"x.toml --case 1", "--case requires --again"},
           {"", "expected FILE.toml, or --again RESULT"},
           {"--again x.toml", "x.toml: "}}) {
    CAPTURE(options);
    const outcome wrong = program(s, "run " + options);
    CHECK(wrong.code == 2);
    INFO(wrong.err);
    CHECK(has(wrong.err, text));
  }
}

TEST_CASE("with --progress json, standard error has one JSON object a line") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << two_strategies << "[optimizer]\nplugin = \"sgd\"\nmomentum = 0.5\n"; // a notice
  const outcome o = program(s, "run x.toml --progress json --out r --set measure.repeats=2");
  REQUIRE(o.code == 0);
  std::istringstream lines(o.err);
  std::vector<json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(parsed(line));
  REQUIRE(objects.size() > 4);
  std::size_t messages = 0, last_repeat = 0;
  for (const json& j : objects) {
    CHECK(j.at("schema") == "regatta.progress/1");
    messages += j.at("kind") == "message" && has(j.at("text"), "momentum");
    if (j.at("kind") != "progress") continue;
    CHECK(j.at("cases") == 2);
    CHECK(j.at("repeats") == 2);
    last_repeat = j.at("repeat");
  }
  CHECK(messages == 1);
  CHECK(last_repeat == 2);
  CHECK(objects.back().at("kind") == "end");
  CHECK(objects.back().at("exit_code") == 0);
  CHECK(objects.back().at("result") == "r/result.json");
}

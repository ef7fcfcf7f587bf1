// SPDX-License-Identifier: Apache-2.0
//
// Standard output is the document, whatever plugins print; what ranks write lies beside the result; and what cannot be
// is refused, with its place, before anything starts.
#include "program.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace regatta::test;

namespace {

const std::string plugins = "--plugin-path " REGATTA_BUILD "/tests/noisy ";

const std::string noisy = R"(
[experiment]
plugin_path = [")" REGATTA_BUILD R"(/tests/noisy"]
[model]
plugin = "noisy"
[data]
source = "random"
[train]
batch = 4
kernels = "fixed"
[cluster]
workers = 2
[measure]
warmup = 1
steps = 3
repeats = 1
baseline = false
)";

const std::string small = R"([model]
plugin = "mlp"
hidden = [4]
[train]
batch = 4
kernels = "fixed"
[measure]
warmup = 0
steps = 1
repeats = 1
baseline = false
)";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

// Of a refusal; both of a run and of a dry run, which say the same.
std::string refusal(const temporary_folder& s, const std::string& toml, const std::string& options = "") {
  write(s.path / "x.toml", toml);
  const outcome o = program(s, "run x.toml --out result --progress never " + options);
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  CHECK_FALSE(fs::exists(s.path / "result"));
  const outcome dry = program(s, "run x.toml --dry-run " + options);
  CHECK(dry.code == 2);
  CHECK(dry.out.empty());
  CHECK(dry.err == o.err);
  return o.err;
}

} // namespace

TEST_CASE("whatever a plugin prints, standard output is the document") {
  const temporary_folder s;
  write(s.path / "x.toml", noisy);
  const std::string check = "check " REGATTA_BUILD "/tests/noisy/noisy_model.so --only seed ";
  struct verb {
    std::string arguments;
    const char* holds; // empty: JSON
  };
  const verb verbs[] = {{"list --json " + plugins, ""},
                        {"list " + plugins, "models\n"},
                        {"describe model/noisy --json " + plugins, ""},
                        {"describe model/noisy " + plugins, "model noisy: "},
                        {check + "--json", ""},
                        {check, "passed, "},
                        {"comm --op send --min 4KiB --max 4KiB --seconds 0.001 --format json " + plugins, ""},
                        {"doctor --json " + plugins, ""},
                        {"run x.toml --out a --progress never --format json", ""},
                        {"run x.toml --out b --progress never --format csv", "\"case\""},
                        {"run x.toml --dry-run", "Nothing was run"}};
  for (const verb& v : verbs) {
    CAPTURE(v.arguments);
    const outcome o = program(s, v.arguments);
    INFO(o.err);
    INFO(o.out);
    CHECK(o.code >= 0);
    CHECK_FALSE(o.out.empty());
    std::string outside = o.out;
    if (v.arguments == check + "--json") { // has what each test printed, as a string
      json document = parsed(o.out);
      for (json& subject : document.at("subjects"))
        for (json& test : subject.at("tests")) test.erase("output");
      outside = document.dump();
    }
    CHECK_FALSE(has(outside, "NOISE"));
    if (*v.holds == '\0')
      CHECK(parsed(o.out).is_structured());
    else if (!has(v.holds, "\"case\""))
      CHECK(has(o.out, v.holds));
  }
  // It did print, and what its ranks printed was kept.
  CHECK(has(read(s.path / "a/logs/case-1-repeat-1-rank-0.log"), "NOISE written in a step"));
  CHECK(program(s, "--version").out.starts_with("regatta "));
  CHECK(has(program(s, "run --help").out, "--log LEVEL"));
  CHECK(has(program(s, "run --keys").out, "[optimizer]"));
}

TEST_CASE("output and logs of each rank are in its file, cleaned, and are shown up to a level") {
  const temporary_folder s;
  write(s.path / "x.toml", noisy);
  const outcome o = program(s, "run x.toml --out result --progress never --sweep train.batch=4,8");
  INFO(o.err);
  REQUIRE(o.code == 0);
  for (const char* name : {"case-1-repeat-1-rank-0.log", "case-1-repeat-1-rank-1.log", "case-2-repeat-1-rank-0.log",
                           "case-2-repeat-1-rank-1.log"}) {
    CAPTURE(name);
    const std::string log = read(s.path / "result/logs" / name);
    CHECK(has(log, " info    NOISE printed in a step  [2J    d\xc3\xa9j\xc3\xa0"));
    CHECK(has(log, " info    NOISE written in a step\n"));
    CHECK(has(log, " warning NOISE complained in a step  [2J"));
    CHECK(has(log, " debug   a detail\n"));
    CHECK_FALSE(has(log, "\x1b"));
    std::size_t steps = 0;
    for (std::size_t at = 0; (at = log.find("NOISE written in a step", at)) != std::string::npos; ++at) ++steps;
    CHECK(steps == 4);
  }
  CHECK(std::distance(fs::directory_iterator(s.path / "result/logs"), {}) == 4);
  const auto shown = [&](const std::string& options) {
    fs::remove_all(s.path / "again");
    const std::string err = program(s, "run x.toml --out again --progress never " + options).err;
    std::string ranks; // those lines that are of ranks
    std::istringstream lines(err);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("rank ")) ranks += line + "\n";
    CHECK_FALSE(has(ranks, "\x1b"));
    CHECK_FALSE(has(ranks, "\xc2\x9b"));
    CHECK_FALSE(has(ranks, "\xe2\x80\xae"));
    CHECK_FALSE(has(ranks, "\xff"));
    return ranks;
  };
  const std::string errors = shown("--log error"), usual = shown(""), info = shown("--log info"),
                    debug = shown("--log debug");
  CHECK(errors.empty());
  CHECK(has(usual, "rank 0: NOISE complained in a step"));
  CHECK(has(usual, "rank 1: NOISE complained in a step"));
  CHECK_FALSE(has(usual, "NOISE written"));
  CHECK(has(info, "rank 1: NOISE written in a step"));
  CHECK_FALSE(has(info, "a detail"));
  CHECK(has(debug, "rank 0: a detail"));
  CHECK(program(s, "run x.toml --log loud").code == 2);

  write(s.path / "x.toml", small);
  REQUIRE(program(s, "run x.toml --out quiet --progress never").code == 0);
  CHECK(fs::exists(s.path / "quiet/result.json"));
  CHECK_FALSE(fs::exists(s.path / "quiet/logs")); // no rank wrote anything
}

TEST_CASE("a rank that dies is named together with the file of what it wrote") {
  const temporary_folder s;
  write(s.path / "x.toml", noisy);
  const outcome o = program(s, "run x.toml --out result --progress never", "NOISY_DIE=1");
  CHECK(o.code == 1);
  const auto at = o.err.find("result/logs/case-1-repeat-1-rank-");
  INFO(o.err);
  REQUIRE(at != std::string::npos);
  CHECK(has(read(s.path / o.err.substr(at, o.err.find_first_of("\n ;", at) - at)), "NOISE written in a step"));
}

TEST_CASE("settings that plugins or data do not allow are refused before the start, with their place in the file") {
  const temporary_folder s;
  const std::string dataset = small + "[data]\nsource = \"dataset\"\n";
  write(s.path / "rubbish", "rubbish\n");
  std::string err = refusal(s, dataset + "format = \"cifar10\"\npath = \"rubbish\"\n");
  CHECK(has(err, "x.toml:15:8: error: data.path: "));
  CHECK(has(err, "rubbish: record 0 is truncated"));
  write(s.path / "good.bin", std::string(3073, '\1'));
  err = refusal(s, dataset + "format = \"cifar10\"\npath = \"good.bin\"\nevaluation_path = \"rubbish\"\n");
  CHECK(has(err, "x.toml:16:19: error: data.evaluation_path: "));
  err = refusal(s, dataset + "format = \"words\"\npath = \"rubbish\"\n");
  CHECK(has(
      err, "x.toml:14:10: error: data.format: format \"words\" feeds word and context, but the model takes an input "));
  CHECK_FALSE(fs::exists(s.path / "rubbish.1.vocabulary"));

  err = refusal(s, small + "[strategy]\nplugin = \"sync_ps\"\n[cluster]\nservers = 0\n");
  CHECK(err ==
        "x.toml:15:11: error: cluster.servers: expected 1 or more for strategy sync_ps, which needs servers, got "
        "0\n");
  const std::string strategy = small + "[cluster]\nworkers = 4\nhosts = 2\n[strategy]\nalgorithm = ";
  err = refusal(s, strategy + "\"hierarchical\"\n");
  CHECK(has(err, "x.toml:14:9: error: cluster.hosts: expected 1 over transport shm, which connects the ranks of one "
                 "host, got 2"));
  err = refusal(s, strategy + "\"hierarchical\"\n[transport]\nplugin = \"tcp\"\n", "--set cluster.workers=3");
  CHECK(has(err, "x.toml:14:9: error: cluster.hosts: expected several hosts with equally many of the 3 workers"));
  err = refusal(s, strategy + "\"hierarchical\"\n", "--set cluster.hosts=1");
  CHECK(has(err, "--set cluster.hosts: expected several hosts"));
  err = refusal(s, strategy + "\"native\"\n[transport]\nplugin = \"tcp\"\n");
  CHECK(has(err, "needs native collectives, which transport tcp does not have"));

  // Everything that is wrong with a case is said at once, each with its place.
  err = refusal(s, small + "[cluster]\nworkers = 4\nhosts = 2\ninterface = \"nosuch0\"\nstraggler.rank = 5\n"
                           "straggler.factor = 2\n[strategy]\nalgorithm = \"hierarchical\"\n");
  CHECK(has(err, "x.toml:14:9: error: cluster.hosts: expected 1 over transport shm"));
  CHECK(has(err, "x.toml:15:13: error: cluster.interface: there is no network interface \"nosuch0\""));
  CHECK(has(err, "x.toml:16:18: error: cluster.straggler.rank: expected a worker from 0 to 3, got 5\n"));
  err = refusal(s, small + "[data]\nsource = \"dataset\"\nformat = \"cifar10\"\npath = \"rubbish\"\n"
                           "evaluation_path = \"rubbish\"\n[strategy]\nplugin = \"dgc\"\nsparsity = []\n");
  CHECK(has(err, "x.toml:15:8: error: data.path: "));
  CHECK(has(err, "\nx.toml:16:19: error: data.evaluation_path: "));
  CHECK(has(err, "\nx.toml:18:10: error: strategy dgc: sparsity: expected one value or more, got []"));

  // A sweep of which nothing can run is refused as a whole, each reason once.
  err = refusal(s, small + "[strategy]\nplugin = \"sync_ps\"\n[cluster]\nservers = 0\n",
                "--sweep train.batch=4,8 --sweep cluster.workers=1,2");
  CHECK(std::ranges::count(err, '\n') == 1);
}

TEST_CASE("a case that a sweep skips says why with its place, in the run and in its estimate") {
  const temporary_folder s;
  write(s.path / "x.toml", small + "[cluster]\nworkers = 2\n[strategy]\nplugin = \"sync_ps\"\n"
                                   "[sweep]\n\"cluster.servers\" = [0, 1]\n");
  const std::string why = "x.toml:17:22: error: cluster.servers: expected 1 or more for strategy sync_ps";
  outcome o = program(s, "run x.toml --out result --progress never --format json");
  REQUIRE(o.code == 0);
  CHECK(has(o.err, "case 1 skipped: " + why));
  CHECK(has(parsed(o.out).at("results").at(0).at("error").get<std::string>(), why));
  o = program(s, "run x.toml --dry-run");
  CHECK(has(o.out, "skipped: " + why));

  write(s.path / "x.toml", small + "[cluster]\nworkers = 2\n[transport]\nplugin = \"shm\"\n");
  o = program(s, "run x.toml --out sweep --progress never --format json --sweep transport.plugin=null,shm");
  REQUIRE(o.code == 0);
  CHECK(has(o.err, "case 1 skipped: --sweep transport.plugin: strategy allreduce cannot run over transport null: "));

  // A plugin's own refusal names the key that chose the plugin.
  write(s.path / "x.toml", small + "[strategy]\nplugin = \"dgc\"\nsparsity = []\n");
  o = program(s, "run x.toml --out refused --progress never");
  CHECK(o.code == 2);
  CHECK(has(o.err, "x.toml:13:10: error: strategy dgc: sparsity: expected one value or more, got []"));
}

TEST_CASE("hierarchical runs where its hosts are equal, and native where the transport has collectives") {
  const temporary_folder s;
  const std::string strategy = small + "[cluster]\nworkers = 4\n[strategy]\nalgorithm = ";
  CHECK(results(s, strategy + "\"hierarchical\"\n[transport]\nplugin = \"tcp\"\n", "--set cluster.hosts=2").size() ==
        1);
  CHECK(results(s, strategy + "\"native\"\n").size() == 1);
  CHECK(results(s, strategy + "\"sharded\"\n").size() == 1);
  CHECK(results(s, strategy + "\"hierarchical\"\n", "--set cluster.workers=1").size() == 1);
}

TEST_CASE("keys without effect are named once, and stand among the result's warnings") {
  const temporary_folder s;
  write(s.path / "x.toml", small + "[optimizer]\nplugin = \"sgd\"\nmomentum = 0.8\n[cluster]\nservers = 3\n");
  const outcome o = program(s, "run x.toml --out result --progress never --format json --sweep train.batch=4,8");
  REQUIRE(o.code == 0);
  const std::string momentum = "x.toml:14:1: notice: optimizer.momentum has no effect with optimizer.plugin = \"sgd\"",
                    servers =
                        "x.toml:16:11: notice: cluster.servers has no effect with strategy.plugin = \"allreduce\"";
  CHECK(o.err.find(momentum) == o.err.rfind(momentum));
  CHECK(has(o.err, momentum + "\n"));
  CHECK(has(o.err, servers + "\n"));
  const json warnings = parsed(o.out).at("context").at("warnings");
  CHECK(std::ranges::count(warnings, json(momentum)) == 1);
  CHECK(std::ranges::count(warnings, json(servers)) == 1);
  CHECK(has(program(s, "run x.toml --dry-run").err, momentum));
  // Where one case of a sweep has servers, the key counts; what is resolved names nothing but what is written there.
  CHECK_FALSE(has(program(s, "run x.toml --dry-run --sweep strategy.plugin=allreduce,sync_ps").err, "cluster.servers"));
  write(s.path / "x.toml", small + "[optimizer]\nplugin = \"sgd\"\n");
  REQUIRE(program(s, "run x.toml --out plain --progress never").code == 0);
  CHECK(program(s, "run plain/resolved.toml --dry-run").err.empty());
}

// SPDX-License-Identifier: Apache-2.0
//
// Claims of an experiment, regatta artifact and regatta reproduce, with short runs.
#include "artifact/artifact.hpp"
#include "program.hpp"
#include "registry/sha256.hpp"

#include <algorithm>
#include <sstream>

using namespace regatta::test;

namespace {

// The bytes that a worker sends do not vary, so claims about them are decided by two repeats.
const char* const experiment = R"(
[model]
plugin = "null"
bytes = "64KiB"
[train]
batch = 8
kernels = "fixed"
[cluster]
workers = 2
[measure]
warmup = 0
steps = 10
repeats = 2
baseline = false
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps"]
)";

std::string claim(const std::string& metric, double at_least) {
  return "[[claim]]\nleft = { strategy.plugin = \"sync_ps\" }\nright = { strategy.plugin = \"allreduce\" }\nmetric = "
         "\"" +
         metric + "\"\nat_least = " + std::to_string(at_least) + "\n";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Starts another program than program(), such as that of an installation.
int shell(const temporary_folder& s, const std::string& line) {
  const int status = std::system(("cd " + s.path.string() + " && " + line + " >out 2>err </dev/null").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Writes the artifact again with another content of one file.
void change(const fs::path& file, const std::string& name, const std::string& content) {
  std::vector<regatta::archived_file> files = regatta::read_archive(read(file));
  const auto at = [&](const std::string& n) { return std::ranges::find(files, n, &regatta::archived_file::name); };
  json manifest = parsed(at("artifact.json")->content);
  regatta::sha256 sum;
  sum.add(content);
  manifest["files"][name] = sum.hex();
  at(name)->content = content;
  at("artifact.json")->content = manifest.dump();
  std::ofstream(file, std::ios::binary) << regatta::write_archive(files);
}

} // namespace

TEST_CASE("claims stand below the table and in the result; changing them needs no new run") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << experiment << claim("bytes.sent_per_step", 0.9);
  const outcome first = program(s, "run x.toml --out r --progress never");
  REQUIRE_MESSAGE(first.code == 0, first.err);
  CHECK(has(first.out, "bytes.sent_per_step of strategy sync_ps / strategy allreduce"));
  CHECK(parsed(read(s.path / "r/result.json")).at("claims").at(0).at("verdict") == "holds");
  const std::string records = read(s.path / "r/records.jsonl");

  // A claim that fails does not change the exit code of a run.
  std::ofstream(s.path / "x.toml") << experiment << claim("bytes.sent_per_step", 9) << claim("step_seconds", 0.01);
  const outcome second = program(s, "run x.toml --out r --resume --progress never");
  CHECK_MESSAGE(second.code == 0, second.err);
  CHECK(read(s.path / "r/records.jsonl") == records); // nothing ran again
  const json claims = parsed(read(s.path / "r/result.json")).at("claims");
  REQUIRE(claims.size() == 2);
  CHECK(claims.at(0).at("verdict") == "fails");
  CHECK(claims.at(1).at("verdict") == "undecided");
  CHECK(claims.at(1).at("repeats_needed") >= 6);
  CHECK(has(program(s, "report r").out, " fails\n"));
  CHECK(has(program(s, "report r --format markdown").out, "| fails |"));
  CHECK(has(program(s, "report r --format html").out, "<td>fails</td>"));
  CHECK(has(program(s, "run x.toml --sweep strategy.plugin=none --set cluster.workers=1 --out n --progress never").err,
            "notice: claim.left: the claim is left out with these options"));
}

TEST_CASE("an artifact is reproduced: exit code 0 if all claims hold, 5 if one fails, 77 if one is undecided") {
  const temporary_folder s;
  const auto exit_code = [&](const std::string& claims, const std::string& name) {
    std::ofstream(s.path / (name + ".toml")) << experiment << claims;
    REQUIRE(program(s, "run " + name + ".toml --out " + name + " --progress never --set measure.steps=5").code == 0);
    const outcome packed = program(s, "artifact " + name + " -o " + name + ".tar.gz");
    REQUIRE_MESSAGE(packed.code == 0, packed.err);
    const outcome again =
        program(s, "reproduce " + name + ".tar.gz --out again-" + name + " --progress never --set measure.steps=6");
    CHECK_MESSAGE(has(again.out, "A: theirs (strategy sync_ps)\nB: ours (strategy sync_ps)\n"), again.out, again.err);
    CHECK(has(again.out, "model null: the same binary is installed here\n"));
    CHECK(has(again.out, "differs: measure.steps: 5 -> 6\n")); // theirs as they ran it, ours as --set says
    return again.code;
  };
  CHECK(exit_code(claim("bytes.sent_per_step", 0.9), "holds") == 0);
  CHECK(has(read(s.path / "out"), "1 of 1 claims hold here, 0 fail, 0 undecided   again-holds\n"));
  CHECK(exit_code(claim("bytes.sent_per_step", 9) + claim("step_seconds", 0.01), "fails") == 5);
  CHECK(exit_code(claim("bytes.sent_per_step", 0.9) + claim("step_seconds", 0.01), "undecided") == 77);
  CHECK(exit_code("", "none") == 77);
  CHECK(has(read(s.path / "out"), "the artifact makes no claims\n"));
  // The same result gives the same bytes; a folder with files is not written.
  REQUIRE(program(s, "artifact holds/result.json -o twice.tar.gz").code == 0);
  CHECK(read(s.path / "twice.tar.gz") == read(s.path / "holds.tar.gz"));
  CHECK(program(s, "reproduce holds.tar.gz --out holds").code == 2);
  CHECK(has(read(s.path / "err"), "--out holds: expected a new or empty folder"));
}

TEST_CASE("a binary without sources is loaded only if the user trusts it, and from the unpacked folder") {
  const temporary_folder s;
  fs::create_directory(s.path / "mine");
  fs::copy(REGATTA_EXAMPLE_STRATEGY, s.path / "mine/star.so");
  std::ofstream(s.path / "x.toml") << experiment << "[[claim]]\nleft = { strategy.plugin = \"./mine/star.so\" }\n"
                                   << "metric = \"bytes.sent_per_step\"\nat_least = 1\n";
  const std::string sweep = " --sweep strategy.plugin=./mine/star.so,allreduce";
  std::ofstream(s.path / "y.toml") << experiment;
  const outcome ran = program(s, "run x.toml --out r --progress never" + sweep);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const outcome packed = program(s, "artifact r -o x.tar.gz");
  REQUIRE(packed.code == 0);
  CHECK(has(packed.err, "strategy star: no sources found beside "));
  CHECK(has(packed.out, "plugins/star.so\n"));
  fs::remove_all(s.path / "mine"); // as on another machine

  const outcome refused = program(s, "reproduce x.tar.gz --out no --progress never");
  CHECK(refused.code == 77);
  CHECK(
      has(refused.err, "strategy star: the artifact has a binary (plugins/star.so) without sources, which is not run"));
  CHECK_FALSE(fs::exists(s.path / "no"));
  CHECK(program(s, "reproduce x.tar.gz --dry-run --trust-binaries --progress json").code == 0);
  CHECK(has(read(s.path / "out"),
            "strategy star: the artifact's plugins/star.so is loaded, because of --trust-binaries\n"));

  const outcome trusted = program(s, "reproduce x.tar.gz --out yes --progress never --trust-binaries");
  CHECK_MESSAGE(trusted.code == 0, trusted.out, trusted.err);
  const json result = parsed(read(s.path / "yes/result/result.json"));
  for (const json& plugin : result.at("context").at("plugins"))
    if (plugin.at("id") == "star") CHECK(has(plugin.at("path"), "/yes/artifact/plugins/star.so"));
}

TEST_CASE("a transport within another one and the plugins of baselines are listed, packed, announced and checked") {
  const temporary_folder s;
  fs::create_directory(s.path / "mine");
  fs::copy(REGATTA_NESTED_TRANSPORT, s.path / "mine/exacting.so");
  std::ofstream(s.path / "x.toml") << experiment;
  const std::string options = " --set transport.plugin=shaped --set transport.over=exacting --plugin-path mine "
                              "--set measure.baseline=true --set measure.repeats=1 --sweep strategy.plugin=allreduce";
  const outcome ran = program(s, "run x.toml --out r --progress never" + options);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const json result = parsed(read(s.path / "r/result.json"));
  std::vector<std::string> listed;
  for (const json& plugin : result.at("context").at("plugins")) {
    listed.push_back(plugin.at("kind").get<std::string>() + " " + plugin.at("id").get<std::string>());
    const bool nested = plugin.at("id") == "exacting" || plugin.at("id") == "shm"; // exacting opens shm
    CHECK(plugin.at("nested_in") == (nested ? json{"shaped"} : json::array()));
  }
  CHECK(listed == std::vector<std::string>{"model null", "strategy allreduce", "transport shaped", "transport shm",
                                           "transport exacting", "strategy none", "transport null"});

  REQUIRE(program(s, "artifact r -o x.tar.gz").code == 0);
  CHECK(has(read(s.path / "out"), "plugins/exacting.so\n"));
  CHECK(program(s, "run --again r --progress never --out again").code == 0); // finds it where it was
  json other = result;
  for (json& plugin : other["context"]["plugins"])
    if (plugin["id"] == "exacting" || plugin["id"] == "none") plugin["sha256"] = "0123";
  fs::create_directory(s.path / "other");
  std::ofstream(s.path / "other/result.json") << other.dump();
  CHECK(program(s, "run --again other --progress never --out changed").code == 0);
  CHECK(has(read(s.path / "err"), "warning: transport exacting is another binary than in other (SHA-256 0123"));
  CHECK(has(read(s.path / "err"), "warning: strategy none is another binary than in other (SHA-256 0123"));

  fs::remove_all(s.path / "mine"); // as on another machine
  CHECK(program(s, "run --again r --progress never --out gone").code == 3);
  CHECK(has(read(s.path / "err"), "r: cannot run again: transport exacting (version "));
  CHECK(program(s, "reproduce x.tar.gz --out no --progress never").code == 77);
  CHECK(has(read(s.path / "err"),
            "transport exacting: the artifact has a binary (plugins/exacting.so) without sources, which is not run"));
  const outcome trusted = program(s, "reproduce x.tar.gz --out yes --progress json --trust-binaries");
  CHECK_MESSAGE(trusted.code == 77, trusted.err); // no claims
  CHECK(has(trusted.out, "transport exacting: the artifact's plugins/exacting.so is loaded"));
  CHECK(has(trusted.out, "strategy none: the same binary is installed here\n"));
  std::istringstream lines(trusted.err);
  json last;
  for (std::string line; std::getline(lines, line);) CHECK_NOTHROW(last = json::parse(line));
  CHECK(last.value("kind", "") == "end");
  CHECK(last.value("exit_code", 0) == 77);
}

TEST_CASE("sources are packed and built again against an installation") {
  const temporary_folder s;
  fs::create_directory(s.path / "mine");
  fs::copy(REGATTA_EXAMPLE_STRATEGY, s.path / "mine/star.so");
  fs::copy(REGATTA_SOURCE "/examples/custom_strategy/star.c", s.path / "mine/star.c");
  std::ofstream(s.path / "x.toml") << experiment << "[[claim]]\nleft = { strategy.plugin = \"star\" }\n"
                                   << "metric = \"bytes.sent_per_step\"\nat_least = 1\n";
  REQUIRE(program(s, "run x.toml --out r --progress never --sweep strategy.plugin=./mine/star.so,allreduce").code == 0);
  REQUIRE(program(s, "artifact r -o x.tar.gz").code == 0);
  CHECK(has(read(s.path / "out"), "sources/star/star.c\n"));
  CHECK(has(read(s.path / "out"), "sources/star/CMakeLists.txt\n"));
  fs::remove_all(s.path / "mine");

  // A build tree has no SDK to build against.
  CHECK(program(s, "reproduce x.tar.gz --out no").code == 77);
  CHECK(has(read(s.path / "err"), "building plugins needs an installation of Regatta"));
  REQUIRE(shell(s, REGATTA_CMAKE " --install " REGATTA_BUILD " --prefix prefix") == 0);
  const int code = shell(s, "PATH=" + fs::path(REGATTA_CMAKE).parent_path().string() +
                                ":$PATH prefix/bin/regatta reproduce x.tar.gz --out yes --progress never");
  CHECK_MESSAGE(code == 0, read(s.path / "out"), read(s.path / "err"));
  const std::string said = read(s.path / "out");
  CHECK(has(said, "strategy star: built from the sources of the artifact\n"));
  CHECK(has(said, "sources/star: cmake builds it, which runs commands of its CMakeLists.txt\n"));
  const json result = parsed(read(s.path / "yes/result/result.json"));
  for (const json& plugin : result.at("context").at("plugins"))
    if (plugin.at("id") == "star") CHECK(has(plugin.at("path"), "/yes/build/star/"));

  change(s.path / "x.tar.gz", "sources/star/star.c", "no C\n");
  CHECK(shell(s, "prefix/bin/regatta reproduce x.tar.gz --out broken --progress never") == 77);
  CHECK(has(read(s.path / "err"), "cannot be built here; the end of "));
}

TEST_CASE("a file that is no artifact, or would leave the folder, is refused with the reason") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << experiment;
  REQUIRE(program(s, "run x.toml --out r --progress never").code == 0);
  REQUIRE(program(s, "artifact r -o x.tar.gz").code == 0);
  const auto refused = [&](const std::string& command, const std::string& text) {
    CAPTURE(command);
    const outcome o = program(s, command);
    CHECK(o.code == 2);
    CHECK_MESSAGE(has(o.err, text), o.err);
  };
  refused("artifact r -o x.zip", "-o x.zip: expected a name that ends in .tar.gz");
  refused("artifact nothing -o x.tgz", "nothing: cannot be read");
  refused("artifact r -o y.tar.gz --sources nothing", "nothing: expected a folder or a file with the sources");
  refused("reproduce r", "r: cannot be read; expected a file of regatta artifact");
  refused("reproduce x.toml", "x.toml: expected a whole file in the format of gzip");
  fs::remove(s.path / "r/resolved-all.toml");
  refused("artifact r -o y.tar.gz", "resolved-all.toml: is missing; a result of this version");
  change(s.path / "x.tar.gz", "experiment.toml",
         std::string(experiment) + "[data]\nsource = \"stream\"\nproducer = \"touch evil\"\n");
  refused("reproduce x.tar.gz --out no", "data.producer = \"touch evil\": a command of the artifact is not run");
  CHECK_FALSE(fs::exists(s.path / "no"));
  // Data that are missing on this machine give 77, not the exit code of a damaged artifact.
  change(s.path / "x.tar.gz", "experiment.toml",
         std::string(experiment) + "[data]\nsource = \"dataset\"\nformat = \"cifar10\"\npath = \"data/cifar\"\n");
  CHECK(program(s, "reproduce x.tar.gz --out here --progress never").code == 77);
  CHECK(has(read(s.path / "err"), "data.path: expected a file or a folder"));
}

TEST_CASE("CITATION.cff names the version of the program") {
  const temporary_folder s;
  REQUIRE(program(s, "--version").code == 0);
  const std::string version = read(s.path / "out").substr(std::string("regatta ").size());
  CHECK(has(read(REGATTA_SOURCE "/CITATION.cff"), "\nversion: " + version)); // both end in a newline
}

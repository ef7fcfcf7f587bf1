// SPDX-License-Identifier: Apache-2.0
//
// The program as a user runs it, real processes and all: what it computes, what it prints, how it ends.
#include "processes.hpp"
#include "program.hpp"
#include "recompute.hpp"

#include <array>
#include <chrono>
#include <random>
#include <vector>

#include <signal.h>

using namespace regatta::test;

namespace {

const std::string tiny = R"(
[model]
plugin = "mlp"
hidden = [32, 16]
[data]
source = "random"
[train]
batch = 24
scaling = "strong"
kernels = "fixed"
[measure]
warmup = 0
steps = 20
repeats = 1
baseline = false
)";

} // namespace

TEST_CASE("N workers train as one does on the same global batch, over every transport, dropout included") {
  const scratch s;
  const std::string dropout = "--set model.dropout=0.5 ";
  const json alone = results(s, tiny, dropout + "--set strategy.plugin=none --set transport.plugin=null");
  const auto expected = alone.at(0).at("loss").at("curve").get<std::vector<double>>();
  REQUIRE(expected.size() == 20);
  // A pairwise cover of strategy x transport x workers x servers x co-location.
  const std::array<const char*, 8> cases = {
      "strategy.plugin=allreduce --set strategy.algorithm=ring --set transport.plugin=tcp --set cluster.workers=2",
      "strategy.plugin=allreduce --set strategy.algorithm=ring --set transport.plugin=shm --set cluster.workers=3",
      "strategy.plugin=allreduce --set strategy.algorithm=halving_doubling --set transport.plugin=tcp --set "
      "cluster.workers=3",
      "strategy.plugin=allreduce --set strategy.algorithm=auto --set transport.plugin=shm --set cluster.workers=4",
      "strategy.plugin=sync_ps --set transport.plugin=tcp --set cluster.workers=2 --set cluster.servers=1",
      "strategy.plugin=sync_ps --set transport.plugin=shm --set cluster.workers=2 --set cluster.servers=3 --set "
      "cluster.colocate=true",
      "strategy.plugin=sync_ps --set transport.plugin=tcp --set cluster.workers=3 --set cluster.servers=2 --set "
      "cluster.colocate=true",
      "strategy.plugin=sync_ps --set transport.plugin=shm --set cluster.workers=4 --set cluster.servers=2"};
  for (const char* options : cases) {
    CAPTURE(options);
    const json r = results(s, tiny, dropout + "--set " + options);
    CHECK(r.at(0).at("replicas_identical") == true);
    const auto curve = r.at(0).at("loss").at("curve").get<std::vector<double>>();
    REQUIRE(curve.size() == expected.size());
    for (std::size_t i = 0; i < curve.size(); ++i) CHECK(curve[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}

TEST_CASE("tcp and shm compute the same weights to the bit, run after run") {
  const scratch s;
  for (const char* strategy :
       {"strategy.plugin=sync_ps --set cluster.servers=2", "strategy.plugin=allreduce --set strategy.algorithm=ring"}) {
    CAPTURE(strategy);
    std::vector<json> hashes;
    for (const char* transport : {"tcp", "shm", "tcp", "shm"})
      hashes.push_back(
          results(s, tiny,
                  std::string("--set cluster.workers=3 --set ") + strategy + " --set transport.plugin=" + transport)
              .at(0)
              .at("weights_sha256")
              .at(0));
    REQUIRE(hashes[0].is_string());
    for (const json& h : hashes) CHECK(h == hashes[0]);
  }
}

TEST_CASE("clipping, accumulation and every optimiser work with several workers") {
  const scratch s;
  for (const char* options :
       {"optimizer.plugin=adam --set optimizer.lr=0.001", "optimizer.clip_norm=0.1", "train.accumulate=3",
        "optimizer.plugin=adagrad", "optimizer.schedule.name=linear --set optimizer.schedule.length=15",
        "optimizer.nesterov=true", "optimizer.weight_decay=0.01"}) {
    CAPTURE(options);
    const std::string set = std::string("--set ") + options;
    const auto curve_of = [](const json& r) { return r.at(0).at("loss").at("curve").get<std::vector<double>>(); };
    const auto alone = curve_of(results(s, tiny, set + " --set strategy.plugin=none --set transport.plugin=null"));
    const auto two = curve_of(
        results(s, tiny, set + " --set strategy.plugin=sync_ps --set cluster.servers=2 --set cluster.workers=2"));
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(two[i] == doctest::Approx(alone[i]).epsilon(2e-5));
  }
}

TEST_CASE("a result says what the contract promises") {
  const scratch s;
  const json r = results(
      s, tiny,
      "--set measure.baseline=true --set measure.repeats=2 --sweep cluster.workers=1,2 --set train.scaling=weak");
  REQUIRE(r.size() == 2);
  for (const json& e : r) {
    CHECK(e.at("status") == "ok");
    CHECK(e.at("samples_per_second").at("repeats").size() == 2);
    CHECK(e.at("efficiency").at("median").get<double>() > 0);
    double parts = 0, lost = 0;
    for (const auto& [name, seconds] : e.at("time").items()) parts += seconds.get<double>();
    for (const auto& [name, share] : e.at("lost").items()) lost += share.get<double>();
    CHECK(lost == doctest::Approx(1 - e.at("efficiency").at("median").get<double>()).epsilon(1e-6));
    CHECK(parts > 0);
    CHECK(e.at("cpu_seconds").size() == e.at("workers").get<std::size_t>());
    check_recomputed(e);
  }
  CHECK(r.at(0).at("case").at("cluster.workers") == 1);
  CHECK(r.at(1).at("contention").is_number());
  CHECK(r.at(1).at("bytes").at("sent_per_step").at("worker").get<double>() > 0);
  CHECK(fs::exists(s.path / "result" / "resolved-1.toml"));
  // The resolved file runs the same case again.
  std::ofstream(s.path / "again.toml") << read(s.path / "result" / "resolved-2.toml");
  const outcome again = program(s, "run again.toml --out again --progress never --format csv");
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(again.out.find("samples_per_second.median") != std::string::npos);
}

TEST_CASE("resume runs what is missing and refuses another experiment") {
  const scratch s;
  results(s, tiny);
  CHECK(program(s, "run x.toml --out result --progress never").code == 2); // holds results already
  const std::string before = parsed(read(s.path / "result" / "result.json")).at("context").at("date");
  const outcome resumed = program(s, "run x.toml --out result --progress never --resume");
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(program(s, "run x.toml --out result --progress never --resume --set train.batch=12").code == 2);
  const outcome nowhere = program(s, "run x.toml --progress never --resume");
  CHECK(nowhere.code == 2);
  CHECK(nowhere.err.find("--resume: expected --out DIR beside it") != std::string::npos);
  CHECK(!fs::exists(s.path / "results"));
}

TEST_CASE("what cannot be is refused before anything starts") {
  const scratch s;
  std::ofstream(s.path / "x.toml") << tiny;
  const auto refused = [&](const std::string& options, int code, const std::string& says) {
    CAPTURE(options);
    const outcome o = program(s, "run x.toml --out r --progress never " + options);
    INFO(o.err);
    CHECK(o.code == code);
    CHECK(o.err.find(says) != std::string::npos);
    CHECK(!fs::exists(s.path / "r" / "result.json"));
  };
  refused("--set model.plugin=vgg61", 3, "vgg16");
  refused("--set train.btach=3", 2, "train.batch");
  refused("--set cluster.workers=2 --set transport.plugin=null", 2, "has no connections");
  refused("--set strategy.plugin=sync_ps --set cluster.servers=0", 2, "cluster.servers");
  refused("--set cluster.interface=nosuch0", 2, "nosuch0");
  refused("--format yaml", 2, "console, markdown, csv or json");
  CHECK(program(s, "run nosuch.toml").code == 2);
  CHECK(program(s, "fly").code == 2);
  CHECK(program(s, "--help").code == 0);
  CHECK(program(s, "run --help").code == 0);
  CHECK(program(s, "--version").out == "regatta 0.1.0\n");
}

TEST_CASE("a case of a sweep that cannot be is skipped with its reason, the others run") {
  const scratch s;
  std::ofstream(s.path / "x.toml") << tiny;
  const outcome o = program(
      s, "run x.toml --out r --progress never --format json --set cluster.workers=2 --sweep transport.plugin=null,shm");
  INFO(o.err);
  CHECK(o.code == 0);
  const json r = parsed(o.out).at("results");
  CHECK(r.at(0).at("status") == "skipped");
  CHECK(r.at(0).at("error").get<std::string>().find("has no connections") != std::string::npos);
  CHECK(r.at(1).at("status") == "ok");
}

TEST_CASE("a dry run names the cases and starts nothing") {
  const scratch s;
  std::ofstream(s.path / "x.toml") << tiny;
  const outcome o = program(s, "run x.toml --dry-run --sweep cluster.workers=1,2,3");
  CHECK(o.code == 0);
  CHECK(o.out.find("cluster.workers = 3") != std::string::npos);
  CHECK(!fs::exists(s.path / "results"));
}

namespace {

// Starts the program on x.toml.
pid_t start(const scratch& s) {
  return start(s, {REGATTA_PROGRAM, "run", "x.toml", "--out", "r", "--progress", "never"});
}

const std::string endless = tiny + "[sweep]\n\"measure.steps\" = [100000000]\n";

} // namespace

TEST_CASE("a rank killed at any moment ends its case, with its name, and leaves nothing") {
  std::mt19937 random(7);
  for (const char* parts : {"plugin = \"allreduce\"\n[transport]\nplugin = \"shm\"\n",
                            "plugin = \"allreduce\"\n[transport]\nplugin = \"tcp\"\n",
                            "plugin = \"sync_ps\"\n[transport]\nplugin = \"shm\"\n",
                            "plugin = \"sync_ps\"\n[transport]\nplugin = \"tcp\"\n"}) {
    CAPTURE(parts);
    const scratch s;
    std::ofstream(s.path / "x.toml") << endless << "[cluster]\nworkers = 2\nservers = 1\n[strategy]\n" << parts;
    const pid_t run = start(s);
    std::vector<pid_t> ranks;
    REQUIRE(within(patience, [&] { return (ranks = children_of(run)).size() >= 2; }));
    // Anywhere from the rendezvous to some steps into the training.
    within(std::chrono::milliseconds(random() % 1500), [] { return false; });
    ranks = children_of(run);
    REQUIRE(ranks.size() >= 2);
    kill(ranks[random() % ranks.size()], SIGKILL);
    int status = 0;
    REQUIRE(within(patience, [&] { return waitpid(run, &status, WNOHANG) == run; }));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 1);
    const std::string err = read(s.path / "err");
    CAPTURE(err);
    CHECK(err.find("killed by SIGKILL") != std::string::npos);
    for (const pid_t p : ranks) CHECK_FALSE(alive(p));
  }
}

TEST_CASE("a coordinator killed at any moment takes its ranks along") {
  std::mt19937 random(8);
  for (const char* transport : {"shm", "tcp"}) {
    const scratch s;
    std::ofstream(s.path / "x.toml") << endless << "[cluster]\nworkers = 2\n[transport]\nplugin = \"" << transport
                                     << "\"\n";
    const pid_t run = start(s);
    std::vector<pid_t> ranks;
    REQUIRE(within(patience, [&] { return (ranks = children_of(run)).size() >= 2; }));
    within(std::chrono::milliseconds(random() % 1500), [] { return false; });
    ranks = children_of(run);
    kill(run, SIGKILL);
    int status = 0;
    waitpid(run, &status, 0);
    for (const pid_t p : ranks) CHECK(within(patience, [&] { return !alive(p); }));
  }
}

TEST_CASE("a signal before anything runs ends the program in order, and a second one always does") {
  const auto handles = [](pid_t p, int number) { // as soon as the program's own first lines have run
    std::error_code gone;
    if (fs::read_symlink("/proc/" + std::to_string(p) + "/exe", gone) != fs::canonical(REGATTA_PROGRAM)) return false;
    std::ifstream status("/proc/" + std::to_string(p) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1) != 0;
    return false;
  };
  for (const int number : {SIGTERM, SIGHUP}) {
    CAPTURE(number);
    const scratch s;
    std::ofstream(s.path / "x.toml") << endless;
    signal(SIGHUP, SIG_DFL);
    const pid_t child = start(s);
    REQUIRE(within(patience, [&] { return handles(child, number); }));
    kill(child, number);
    int status = 0;
    REQUIRE(within(patience, [&] { return waitpid(child, &status, WNOHANG) == child; }));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 130);
  }
  // Ranks that cannot end in order: the second signal kills them.
  const scratch s;
  std::ofstream(s.path / "x.toml") << endless << "[cluster]\nworkers = 2\n";
  const pid_t run = start(s);
  std::vector<pid_t> ranks;
  REQUIRE(within(patience, [&] { return (ranks = children_of(run)).size() >= 2; }));
  for (const pid_t p : ranks) kill(p, SIGSTOP);
  kill(run, SIGTERM);
  kill(run, SIGHUP);
  int status = 0;
  REQUIRE(within(patience, [&] { return waitpid(run, &status, WNOHANG) == run; }));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  for (const pid_t p : ranks) CHECK(within(patience, [&] { return !alive(p); }));
}

TEST_CASE("closed standard descriptors and a limit on files do no harm") {
  const scratch s;
  const outcome usual = program(s, "list models --json");
  fs::remove(s.path / "out");
  const outcome closed = program(s, "list models --json <&- 2>&- >out #");
  CHECK(closed.code == 0);
  CHECK(usual.out.find("\"mlp\"") != std::string::npos);
  CHECK(closed.out == usual.out);
  std::ofstream(s.path / "x.toml") << tiny;
  const std::string command = "cd " + s.path.string() +
                              " && (ulimit -f 1; " REGATTA_PROGRAM
                              " run x.toml --out r --progress never --format json; "
                              "echo code $?) 2>&1 | cat >said";
  CHECK(std::system(command.c_str()) == 0);
  const std::string said = read(s.path / "said");
  CAPTURE(said);
  CHECK(said.find("code 153") == std::string::npos); // killed by SIGXFSZ
  CHECK(said.find("File too large") != std::string::npos);
}

TEST_CASE("Ctrl-C ends everything at once and keeps the finished cases") {
  const scratch s;
  // The first case is short, the second endless: the signal comes once the first one's entry is in the file.
  std::ofstream(s.path / "x.toml") << tiny << "[sweep]\n\"measure.steps\" = [2, 100000000]\n";
  const pid_t child = start(s);
  const fs::path file = s.path / "r" / "result.json";
  const auto first_done = [&] {
    const json j = parsed(read(file), true);
    return j.is_object() && !j.at("results").empty() && j.at("results").at(0).at("status") == "ok";
  };
  while (!(fs::exists(file) && first_done())) REQUIRE(waitpid(child, nullptr, WNOHANG) == 0);
  kill(child, SIGINT);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  const json r = parsed(read(file)).at("results");
  REQUIRE(r.size() == 1); // no run of the second case has finished
  CHECK(r.at(0).at("status") == "ok");
  CHECK(read(s.path / "err") == "interrupted: 1 of 2 cases finished; go on with --out r --resume\n");
}

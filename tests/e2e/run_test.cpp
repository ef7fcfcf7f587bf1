// SPDX-License-Identifier: Apache-2.0
//
// The program as a user runs it, real processes and all: its results, its output and its refusals.
#include "program.hpp"
#include "recompute.hpp"

#include <array>
#include <cmath>
#include <vector>

using namespace regatta::test;

namespace {

const std::string tiny = small_experiment(20);

} // namespace

TEST_CASE("N workers train as one does on the same global batch, over every transport, dropout included") {
  const temporary_folder s;
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
  const temporary_folder s;
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
  const temporary_folder s;
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
  const temporary_folder s;
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
  CHECK(r.at(1).at("contention").is_object());
  CHECK(r.at(1).at("bytes").at("sent_per_step").at("worker").get<double>() > 0);
  CHECK(fs::exists(s.path / "result" / "resolved-1.toml"));
  // The resolved file runs the same case again.
  std::ofstream(s.path / "again.toml") << read(s.path / "result" / "resolved-2.toml");
  const outcome again = program(s, "run again.toml --out again --progress never --format csv");
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(again.out.find("samples_per_second.median") != std::string::npos);
}

TEST_CASE("a run has the counters of the transport's own, by rank, of the timed region only") {
  const temporary_folder s;
  const auto counters = [&](const std::string& options) -> json {
    const json r = results(s, small_experiment(20),
                           "--set strategy.plugin=allreduce --set strategy.algorithm=ring "
                           "--set cluster.workers=2 --set transport.plugin=" +
                               options);
    return r.at(0).at("repeats").at(0).at("case").at("transport_counters");
  };
  const json tcp = counters("tcp");
  REQUIRE(tcp.size() == 2);
  for (const json& rank : tcp) {
    CAPTURE(rank);
    CHECK(rank.at("system_calls").get<double>() >= 20); // each step sends at least one message
    CHECK(rank.at("retransmits").get<double>() >= 0);
    CHECK_FALSE(rank.contains("rail_0_bytes"));
  }
  const json rails = counters("tcp --set strategy.bucket=64KiB --set cluster.interface=127.0.0.1,127.0.0.2");
  for (const json& rank : rails) { // buckets take different lanes, and these different rails
    CAPTURE(rank);
    CHECK(rank.at("rail_0_bytes").get<double>() > 0);
    CHECK(rank.at("rail_1_bytes").get<double>() > 0);
  }
  // The ring of two ranks sends the same messages in every step, and a record for each, whatever the warm-up sent.
  const json eager = counters("shm --set transport.eager=1MiB --set transport.ring=8MiB");
  const json direct = counters("shm --set transport.eager=0");
  REQUIRE(eager.size() == 2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CAPTURE(rank);
    const double messages = eager.at(rank).at("eager_messages");
    CHECK(messages >= 20);
    CHECK(std::fmod(messages, 20) == 0);
    CHECK(eager.at(rank).at("direct_messages") == 0);
    CHECK(direct.at(rank).at("direct_messages") == messages);
    CHECK(direct.at(rank).at("eager_messages") == 0);
  }
}

TEST_CASE("by default, two ranks copy messages of 512 KiB into the ring of shm, and a smaller ring takes fewer") {
  const temporary_folder s;
  const auto counters = [&](const std::string& options) -> json {
    const json r =
        results(s,
                "[model]\nplugin = \"null\"\ntensors = 1\nbytes = \"1MiB\"\n[cluster]\nworkers = 2\n[measure]\n"
                "warmup = 1\nsteps = 4\nrepeats = 1\nbaseline = false\n",
                "--set strategy.plugin=allreduce --set strategy.algorithm=ring --set transport.plugin=shm" + options);
    return r.at(0).at("repeats").at(0).at("case").at("transport_counters").at(0);
  };
  const json usual = counters(""), small = counters(" --set transport.ring=256KiB");
  CHECK(usual.at("eager_messages") >= 4);
  CHECK(usual.at("direct_messages") == 0);
  CHECK(small.at("eager_messages") == 0);
  CHECK(small.at("direct_messages") == usual.at("eager_messages"));
}

TEST_CASE("resume runs what is missing and refuses another experiment") {
  const temporary_folder s;
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

TEST_CASE("invalid settings are refused before anything starts") {
  const temporary_folder s;
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
  refused("--format yaml", 2, "console, markdown, csv, json, latex or html");
  CHECK(program(s, "run nosuch.toml").code == 2);
  CHECK(program(s, "fly").code == 2);
  CHECK(program(s, "--help").code == 0);
  CHECK(program(s, "run --help").code == 0);
  CHECK(program(s, "--version").out == "regatta 0.1.0\n");
}

TEST_CASE("a case of a sweep that cannot be is skipped with its reason, the others run") {
  const temporary_folder s;
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
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny;
  const outcome o = program(s, "run x.toml --dry-run --sweep cluster.workers=1,2,3");
  CHECK(o.code == 0);
  CHECK(o.out.find("cluster.workers = 3") != std::string::npos);
  CHECK(!fs::exists(s.path / "results"));
}

TEST_CASE("closed standard descriptors and a limit on files do no harm") {
  const temporary_folder s;
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

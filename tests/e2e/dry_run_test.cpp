// SPDX-License-Identifier: Apache-2.0
//
// The structure of estimates, not their truth: what they grow with, and what is counted once. How near they come is in
// docs/experiments.md.
#include "program.hpp"

#include <map>

using namespace regatta::test;

namespace {

const std::string small = R"(
[model]
plugin = "mlp"
[train]
batch = 64
kernels = "fixed"
[cluster]
workers = 2
[measure]
warmup = 0
steps = 100
repeats = 1
baseline = false
)";

// Of one program: machine speed is measured anew by each.
json estimated(const std::string& options, const std::string& toml = small) {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << toml;
  const outcome o = program(s, "run x.toml --dry-run --format json " + options);
  INFO(o.err);
  REQUIRE(o.code == 0);
  CHECK(!fs::exists(s.path / "results"));
  json j = parsed(o.out);
  CHECK(j.at("schema") == "regatta.estimate/1");
  return j;
}

double seconds(const json& entry) {
  return entry.at("time").at("seconds");
}

double seconds(const json& document, std::size_t index) {
  return seconds(document.at("cases").at(index));
}

} // namespace

TEST_CASE("time grows with steps, beyond a process's start") {
  const json j = estimated("--sweep measure.steps=100,200,400");
  const double a = seconds(j, 0), b = seconds(j, 1), c = seconds(j, 2);
  CHECK(c - b == doctest::Approx(2 * (b - a)));
  CHECK(b - a > 0);
  CHECK(a > b - a); // the start
  const json more = estimated("--sweep measure.repeats=1,3");
  CHECK(seconds(more, 1) == doctest::Approx(3 * seconds(more, 0)));
}

TEST_CASE("workers that share cores take longer, those with cores of their own do not") {
  const std::string alone = "--set strategy.plugin=none --set transport.plugin=null --set measure.steps=100000 ";
  const json j = estimated(alone + "--sweep cluster.workers=1,16,32");
  const double cores = j.at("machine").at("cores");
  if (cores < 8) {
    CHECK(seconds(j, 2) == doctest::Approx(2 * seconds(j, 1)).epsilon(0.02));
    CHECK(seconds(j, 1) == doctest::Approx(16 / cores * seconds(j, 0)).epsilon(0.1));
  }
  const double cpu = j.at("cases").at(2).at("time").at("cpu_seconds");
  CHECK(cpu == doctest::Approx(32 * j.at("cases").at(0).at("time").at("cpu_seconds").get<double>()).epsilon(0.02));
}

TEST_CASE("the start of many ranks is counted") {
  const json j = estimated("--set model.plugin=null --set measure.steps=1 --sweep cluster.workers=2,40");
  CHECK(seconds(j, 1) > 5 * seconds(j, 0) / j.at("machine").at("cores").get<double>());
  CHECK(j.at("cases").at(1).at("ranks") == 40);
}

TEST_CASE("the start of a data producer is counted") {
  const std::string stream = "--set measure.steps=1 --set data.source=stream --set data.endpoint=tcp://127.0.0.1:5599 ";
  const json without = estimated(stream), with = estimated(stream + "--set data.producer=feed");
  CHECK(seconds(with, 0) - seconds(without, 0) == doctest::Approx(0.7).epsilon(0.1)); // two measurements of the machine
}

TEST_CASE("a baseline, a control and the timing of kernels are counted once for all that share them") {
  const json j = estimated("--set measure.baseline=true --set measure.repeats=3 --set train.kernels=timed "
                           "--sweep strategy.plugin=allreduce,sync_ps,none");
  std::map<std::string, json> shared;
  double sum = 0;
  for (const json& s : j.at("shared")) {
    CHECK(shared.emplace(s.at("what"), s).second); // one of each
    sum += seconds(s);
  }
  CHECK(shared.at("baseline").at("cases") == json({0, 1, 2}));
  CHECK(shared.at("baseline").at("workers") == 1);
  CHECK(shared.at("baseline").at("runs") == 6);
  CHECK(shared.at("control").at("cases") == json({0, 1})); // `none` is a control itself
  CHECK(shared.at("control").at("workers") == 2);
  CHECK(shared.at("kernel timing").at("runs") == 1);
  for (const json& c : j.at("cases")) sum += seconds(c);
  CHECK(j.at("total").at("seconds").get<double>() == doctest::Approx(sum));
}

TEST_CASE("a slow wire, a slow worker and servers count") {
  // So slow that the wire takes longer than the computation on any machine, under a sanitizer too.
  const json wire = estimated("--set transport.plugin=shaped --sweep transport.bandwidth=100kbit/s,100Gbit/s");
  CHECK(seconds(wire, 0) > 10 * seconds(wire, 1));
  // Of dgc a thousandth crosses.
  const json dense = estimated("--set transport.plugin=shaped --set transport.bandwidth=100kbit/s --set "
                               "'strategy.dgc.sparsity=[0.999]' --sweep strategy.plugin=allreduce,dgc");
  CHECK(seconds(dense, 0) > 10 * seconds(dense, 1));
  const json slow = estimated("--set strategy.plugin=none --set transport.plugin=null --set measure.steps=10000 "
                              "--set cluster.workers=1 --sweep cluster.straggler.factor=1,3");
  CHECK(seconds(slow, 1) > 2 * seconds(slow, 0));
  // Four servers share the update of the weights, which is most of the CPU time here.
  const json servers = estimated("--set model.plugin=null --set model.bytes=64MiB --set strategy.plugin=sync_ps --set "
                                 "optimizer.plugin=adam --set measure.steps=1000 --sweep cluster.servers=1,4");
  const auto cpu_seconds = [&](std::size_t i) {
    return servers.at("cases").at(i).at("time").at("cpu_seconds").get<double>();
  };
  CHECK(cpu_seconds(1) < 1.2 * cpu_seconds(0));
}

TEST_CASE("a case that cannot run says why, in every format") {
  const json j = estimated("--sweep transport.plugin=null,shm");
  CHECK(j.at("cases").at(0).at("time").is_null());
  CHECK(j.at("cases").at(0).at("refused").get<std::string>().find("has no connections") != std::string::npos);
  CHECK(j.at("cases").at(1).at("refused").is_null());
  CHECK(j.at("total").at("seconds") == seconds(j, 1));

  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  const auto printed = [&](const std::string& format) {
    const outcome o = program(s, "run x.toml --dry-run --sweep transport.plugin=null,shm --format " + format);
    INFO(o.err);
    CHECK(o.code == 0);
    return o.out;
  };
  const std::string csv = printed("csv");
  CHECK(csv.find("time.cpu_seconds") != std::string::npos);
  CHECK(csv.find("\n\"transport.plugin = \"\"null\"\"\",") != std::string::npos);
  CHECK(printed("markdown").find("| skipped: ") != std::string::npos);
  CHECK(printed("console").find("Nothing was run. 1 of 2 cases would take ") != std::string::npos);
  const outcome none =
      program(s, "run x.toml --dry-run --set train.device=cuda --sweep cluster.workers=1,2", "CUDA_VISIBLE_DEVICES=");
  CHECK(none.out.find("No case can run on this machine.") != std::string::npos);
  CHECK(none.code == 77);
}

TEST_CASE("a csv has the same columns for one case, for many, and where one cannot run") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  const auto csv = [&](const std::string& options) {
    return program(s, "run x.toml --dry-run --format csv " + options).out;
  };
  const auto header = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  const std::string one = csv("");
  CHECK(header(one).starts_with("case,"));
  CHECK(one.find("\n\"mlp, ") != std::string::npos);
  CHECK(header(csv("--sweep measure.steps=100,200")) == header(one));
  CHECK(header(csv("--sweep transport.plugin=null,shm")) == header(one));
}

TEST_CASE("with a machine file the time of steps is that of the simulation") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  std::ofstream(s.path / "m.toml") << "[compute]\nbatch = 64\nsamples_per_second = 640\n";
  std::ofstream(s.path / "n.toml") << "[network]\nbandwidth = \"1Mbit/s\"\n";
  const auto total = [&](const std::string& options) {
    const outcome o =
        program(s, "run x.toml --dry-run --format json --set transport.plugin=tcp --set cluster.hosts=2 " + options);
    INFO(o.err);
    REQUIRE(o.code == 0);
    return parsed(o.out);
  };
  const json fast = total("--machine m.toml"), slow = total("--machine m.toml --network n.toml");
  CHECK(seconds(fast, 0) > 100 * 0.099);            // 100 steps of 64 samples
  CHECK(seconds(slow, 0) > seconds(fast, 0) + 100); // megabytes of gradients at 1 Mbit/s
  CHECK(fast.at("simulated").is_string());
  CHECK(fast.at("cases").at(0).at("time").at("cpu_seconds").is_null());
  CHECK(total("").at("simulated").is_null());
  std::ofstream(s.path / "m.toml") << "[model]\nplugin = \"vgg16\"\n[compute]\nbatch = 64\nsamples_per_second = 1\n";
  const outcome other = program(s, "run x.toml --dry-run --format json --machine m.toml");
  CHECK(other.code == 2);
  CHECK((other.out + other.err).find("expected vgg16, of which the machine file is") != std::string::npos);
  CHECK(program(s, "run x.toml --machine m.toml").code != 0); // needs --dry-run
}

TEST_CASE("a dry run finds machine.toml beside the experiment, and says whether it is used") {
  const temporary_folder s;
  std::filesystem::create_directory(s.path / "sub");
  std::ofstream(s.path / "sub/x.toml") << small;
  const auto dry_run = [&] { return program(s, "run sub/x.toml --dry-run --format json --set transport.plugin=tcp"); };
  CHECK(parsed(dry_run().out).at("simulated").is_null());
  std::ofstream(s.path / "sub/machine.toml") << "[compute]\nbatch = 64\nsamples_per_second = 640\n";
  const outcome found = dry_run();
  REQUIRE(found.code == 0);
  CHECK(parsed(found.out).at("simulated").is_string());
  CHECK(seconds(parsed(found.out), 0) > 100 * 0.09); // 100 steps of 64 samples
  CHECK(found.err.find("sub/machine.toml, the machine file beside the experiment") != std::string::npos);
  std::ofstream(s.path / "sub/machine.toml") << "[model]\nplugin = \"vgg16\"\n[compute]\nbatch = 64\n"
                                                "samples_per_second = 1\n";
  const outcome other = dry_run();
  REQUIRE(other.code == 0);
  CHECK(parsed(other.out).at("simulated").is_null());
  CHECK(other.err.find("sub/machine.toml is of model vgg16") != std::string::npos);
}

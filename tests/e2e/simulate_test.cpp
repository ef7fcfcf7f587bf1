// SPDX-License-Identifier: Apache-2.0
//
// Simulated experiments: their marks, their refusals, and that they repeat.
#include "simulated.hpp"

#include <algorithm>
#include <string>

#include <sys/resource.h>

using namespace regatta::test;

TEST_CASE("a simulation is marked everywhere, knows no loss, and repeats to the nanosecond") {
  const experiment_folder s;
  const json a = simulated(s, "--machine m.toml --out a"), b = simulated(s, "--machine m.toml --out b");
  CHECK(a.at("simulated") == true);
  REQUIRE(a.at("results").size() == 2);
  for (const json& entry : a.at("results")) {
    CHECK(entry.at("simulated") == true);
    CHECK(entry.at("fingerprint").at("simulated").is_string());
    CHECK(entry.at("loss").is_null());
    CHECK(entry.at("cpu_seconds").is_null());
    CHECK(entry.at("status") == "ok");
  }
  CHECK(a.at("results") == b.at("results"));
  const json& two = a.at("results").at(1);
  CHECK(two.at("bytes").at("sent_per_step").at("worker") == 4.0 * (1 << 20)); // a ring of two: 2 (n - 1) / n
  CHECK(two.at("efficiency").at("median").get<double>() < 1);
  CHECK(two.at("repeats").at(0) != two.at("repeats").at(1)); // the variation
  const outcome csv = program(s, "report a --format csv");
  CHECK(csv.out.substr(0, csv.out.find('\n')).find(",simulated,") != std::string::npos);
  CHECK(program(s, "report a").out.find("SIMULATED") == 0);
  // Each of the tables that are asked for says so itself: they are copied into papers one by one.
  std::ofstream(s.path / "x.toml", std::ios::app)
      << "[[report]]\ntitle = \"rates\"\nrows = \"cluster.workers\"\ncolumns = \"strategy.plugin\"\nvalue = "
         "\"throughput\"\n";
  simulated(s, "--machine m.toml --out c");
  for (const char* format : {"console", "markdown", "latex", "html"}) {
    CAPTURE(format);
    const std::string shown = program(s, std::string("report c --format ") + format).out;
    CHECK(shown.find("SIMULATED: rates: ") != std::string::npos);
    CHECK(shown.find("Measured") == std::string::npos);
  }
}

TEST_CASE("a slower network takes longer, and a wrong machine file is refused with its position") {
  const experiment_folder s;
  std::ofstream(s.path / "n.toml") << "[network]\nbandwidth = \"100Mbit/s\"\n";
  const auto rate = [](const json& d) {
    return d.at("results").at(1).at("samples_per_second").at("median").get<double>();
  };
  const double fast = rate(simulated(s, "--machine m.toml --out a --set cluster.hosts=2"));
  const double slow = rate(simulated(s, "--machine m.toml --network n.toml --out b --set cluster.hosts=2"));
  CHECK(slow < 0.5 * fast);
  std::ofstream(s.path / "m.toml") << "[compute]\nbatch = true\n";
  const outcome o = program(s, "simulate x.toml --machine m.toml --out c");
  CHECK(o.code == 2);
  CHECK(o.err.find("m.toml:2:9: error: compute.batch") == 0);
}

TEST_CASE("messages between hosts may have overheads of their own") {
  const experiment_folder s;
  std::ofstream(s.path / "slow.toml")
      << machine + "[transport.tcp.between_hosts]\noverhead = \"2ms\"\noverhead_per_byte = 5\n";
  const auto ms_of_step = [&](const std::string& file, const std::string& hosts) {
    const json d = simulated(s, "--machine " + file + " --out " + file + hosts + " --set cluster.hosts=" + hosts);
    return 64e3 / d.at("results").at(1).at("samples_per_second").at("median").get<double>(); // two workers of 32
  };
  CHECK(ms_of_step("slow.toml", "1") == ms_of_step("m.toml", "1"));
  // In a ring of two a rank sends two halves of 4 MiB and receives two: 4 times 2 ms + 5 ns/B, one after the other, where
  // a message of m.toml takes 5 us + 0.1 ns/B. The 1.7 ms of the link for either half pass meanwhile.
  CHECK(ms_of_step("slow.toml", "2") > ms_of_step("m.toml", "2") + 4 * (2 + 2.1 * 4.9) - 2 * 1.7);
}

TEST_CASE("messages in bf16 and fp16 are converted at both ends, which takes time") {
  const experiment_folder s;
  const auto ms_of_step = [&](const std::string& wire, const std::string& work) {
    std::ofstream(s.path / "w.toml") << machine + "[work]\n" + work;
    const json d =
        simulated(s, "--machine w.toml --out " + wire + " --set cluster.hosts=2 --set strategy.wire=" + wire);
    std::filesystem::remove_all(s.path / wire);
    return 64e3 / d.at("results").at(1).at("samples_per_second").at("median").get<double>(); // two workers of 32
  };
  const double without = ms_of_step("fp16", "convert = 0\n");
  CHECK(ms_of_step("bf16", "convert = 0\n") == without);
  // In a ring of two, 2 MiB of gradients are converted four times, one after the other: 1 Mi elements of 6 bytes, that is
  // 6.3 ms for each ns/B, and as many in the next message.
  CHECK(ms_of_step("bf16", "convert = 1\n") > without + 12);
  CHECK(ms_of_step("fp16", "convert = 0\nconvert_fp16 = 1\n") == ms_of_step("bf16", "convert = 1\n"));
  CHECK(ms_of_step("bf16", "convert = 0\nconvert_fp16 = 1\n") == without);
}

TEST_CASE("a slow host, a narrow switch, jitter and others' load slow a simulation down, and it repeats") {
  const experiment_folder s;
  int number = 0;
  const auto rate = [&](const std::string& network) {
    const std::string name = "n" + std::to_string(number++);
    std::ofstream(s.path / (name + ".toml")) << "[network]\nbandwidth = \"1Gbit/s\"\n" << network;
    return simulated(s, "--machine m.toml --network " + name + ".toml --out " + name +
                            " --set cluster.workers=4 --set cluster.hosts=4 --set measure.baseline=false")
        .at("results")
        .at(0)
        .at("samples_per_second")
        .at("median")
        .get<double>();
  };
  std::ofstream(s.path / "x.toml") << experiment.substr(0, experiment.find("[sweep]"));
  const double plain = rate("");
  CHECK(rate("[[network.tier]]\nhosts = 2\n") == doctest::Approx(plain).epsilon(0.1));
  CHECK(rate("[[network.tier]]\nhosts = 2\noversubscription = 8\n") < 0.5 * plain);
  CHECK(rate("[[network.host]]\nhosts = 2\nbandwidth = \"250Mbit/s\"\n") < 0.6 * plain);
  CHECK(rate("link_load = 0.75\n") < 0.5 * plain);
  CHECK(rate("core_load = 0.9\n") < 0.8 * plain);
  CHECK(rate("loss = 0.01\nlatency = \"1ms\"\n") < 0.5 * plain);
  const double shaken = rate("jitter = \"5ms\"\n");
  CHECK(shaken < plain);
  CHECK(rate("jitter = \"5ms\"\n") == shaken);
}

TEST_CASE("the ranks of a host stand for those of the others, and the result is that of all ranks") {
  const equal_steps_folder s;
  for (const std::string algorithm : {"ring", "hierarchical", "halving_doubling"}) {
    CAPTURE(algorithm);
    const std::string options = "--machine m.toml --set cluster.workers=32 --set cluster.hosts=8 --set "
                                "strategy.algorithm=" +
                                algorithm + " --out " + algorithm;
    const json folded = simulated(s, options).at("results").at(0),
               all = simulated(s, options + "-all --export goal").at("results").at(0); // which folds nothing
    CHECK(folded.at("samples_per_second").at("median") == all.at("samples_per_second").at("median"));
    CHECK(folded.at("warnings").empty());
  }
}

// Each rank had a description of the run of its own, with all other ranks: 2.6 GB with 4,000 workers.
TEST_CASE("a simulation of thousands of workers takes no gigabytes") {
  const equal_steps_folder s;
  const json d = simulated(s, "--machine m.toml --out a --set cluster.workers=4000 --set cluster.hosts=4000 --set "
                              "measure.baseline=false --set measure.repeats=1");
  CHECK(d.at("results").at(0).at("status") == "ok");
  rusage children{};
  REQUIRE(::getrusage(RUSAGE_CHILDREN, &children) == 0);
  CHECK(children.ru_maxrss > 1 << 10);
  CHECK(children.ru_maxrss < 1 << 20); // KiB
}

TEST_CASE("messages take their processor time from computing where ranks have no core for them") {
  const experiment_folder s;
  int number = 0;
  const auto entry = [&](const std::string& cores, const std::string& loss, const std::string& options) {
    const std::string name = "m" + std::to_string(number++);
    // 4 MiB a step at 2 ns a byte are 8 ms for sends and as many for receives, beside 24 ms of the backward pass.
    std::ofstream(s.path / (name + ".toml"))
        << "[machine]\ncores = " << cores << "\n[compute]\nbatch = 32\nsamples_per_second = 889\n"
        << "[transport.tcp]\noverhead_per_byte = 2\nbandwidth = \"800Gbit/s\"\n"
        << loss;
    return simulated(s, "--machine " + name + ".toml --out " + name +
                            " --set cluster.workers=2 --set strategy.bucket=1MiB " + options);
  };
  std::ofstream(s.path / "x.toml") << experiment.substr(0, experiment.find("[sweep]"));
  const auto part = [](const json& d, const char* name) {
    return d.at("results").at(0).at("time").at(name).get<double>();
  };
  const json unknown = entry("2", "", ""), known = entry("2", "computing_loss = 1.5\n", ""),
             idle = entry("4", "computing_loss = 1.5\n", "--set cluster.pin=false");
  const std::string warning = "the machine file has no computing_loss in [transport.tcp]";
  CHECK(unknown.at("results").at(0).at("warnings").dump().find(warning) != std::string::npos);
  CHECK(known.at("results").at(0).at("warnings").dump().find(warning) == std::string::npos);
  CHECK(part(known, "backward") > part(unknown, "backward") + 0.003);
  CHECK(part(idle, "backward") == doctest::Approx(part(unknown, "backward")));
  CHECK(part(known, "forward") == doctest::Approx(part(unknown, "forward")));
}

TEST_CASE("operations of more ranks than cores take turns, also where hosts share the cores of one machine") {
  const experiment_folder s;
  std::ofstream(s.path / "x.toml") << experiment.substr(0, experiment.find("[sweep]"));
  int number = 0;
  // An update of 4 MiB of weights takes about 100 ms of a core.
  const auto rate = [&](const char* cores, int hosts, const char* network) {
    const std::string name = "m" + std::to_string(number++);
    std::ofstream(s.path / (name + ".toml"))
        << "[machine]\ncores = " << cores << "\n[compute]\nbatch = 32\nsamples_per_second = 3200\non_cores = false\n"
        << "[work]\ndefault = 10\n[transport.tcp]\nbandwidth = \"800Gbit/s\"\n"
        << "[network]\nbandwidth = \"100Gbit/s\"\n"
        << network;
    const json d = simulated(s, "--machine " + name + ".toml --out " + name +
                                    " --set cluster.workers=4 --set cluster.hosts=" + std::to_string(hosts));
    CHECK(d.at("results").at(0).at("warnings").dump().find("computing_loss") == std::string::npos);
    return d.at("results").at(0).at("samples_per_second").at("median").get<double>();
  };
  const double own = rate("1", 4, ""), shared = rate("1", 4, "cores = \"shared\"\n"), one_host = rate("1", 1, "");
  CHECK(rate("4", 1, "") == doctest::Approx(rate("4", 4, "")).epsilon(0.02));
  CHECK(shared == doctest::Approx(one_host).epsilon(0.02));
  CHECK(shared < 0.4 * own);
  CHECK(shared > 0.2 * own);
}

TEST_CASE("operations take longer where several ranks of a host run them at once") {
  const experiment_folder s;
  const std::string compute = "[compute]\nbatch = 32\nsamples_per_second = 3200\n[work]\napply = 1\n";
  std::ofstream(s.path / "alone.toml") << compute;
  std::ofstream(s.path / "beside.toml") << compute
                                        << "[contention]\nworkers = [1, 2]\nslowdown = [1, 1]\noperations = [1, 3]\n";
  int number = 0;
  const auto entry = [&](const std::string& file, const std::string& options) {
    const std::string out = " --out o" + std::to_string(number++);
    return simulated(s, "--machine " + file + out + " --set cluster.workers=2 " + options).at("results").at(0);
  };
  const std::string without_sweep = experiment.substr(0, experiment.find("[sweep]"));
  std::ofstream(s.path / "x.toml") << without_sweep;
  const auto update = [](const json& e) { return e.at("time").at("update").get<double>(); };
  const double alone = update(entry("beside.toml", "--set cluster.hosts=2"));
  CHECK(alone == doctest::Approx(5 * 1e-9 * 4 * (1 << 20)).epsilon(0.01)); // of 4 MiB of weights
  CHECK(update(entry("beside.toml", "")) == doctest::Approx(3 * alone));
  // On received gradients, beside which the run of one worker is as before.
  std::ofstream(s.path / "received.toml") << compute << "[transport.tcp]\napply_in_training = 1.5\n";
  const json received = entry("received.toml", "--set cluster.hosts=2 --set measure.baseline=true"),
             fresh = entry("alone.toml", "--set cluster.hosts=2 --set measure.baseline=true");
  CHECK(update(received) == doctest::Approx(1.5 * alone));
  CHECK(received.at("baseline_samples_per_second") == fresh.at("baseline_samples_per_second"));
  // With servers, these update: one works alone, two on one host do not.
  std::string with_servers = without_sweep;
  with_servers.replace(with_servers.find("\"allreduce\""), 31, "\"sync_ps\"\n");
  REQUIRE(with_servers.find("ring") == std::string::npos);
  std::ofstream(s.path / "x.toml") << with_servers;
  const auto rate = [&](const std::string& file, const std::string& servers) {
    return entry(file, "--set cluster.servers=" + servers).at("samples_per_second").at("median").get<double>();
  };
  CHECK(rate("beside.toml", "1") == rate("alone.toml", "1"));
  CHECK(rate("beside.toml", "2") < 0.9 * rate("alone.toml", "2"));
}

TEST_CASE("collectives that are not modelled as they are give a warning, and only these") {
  const experiment_folder s;
  std::ofstream(s.path / "x.toml") << experiment.substr(0, experiment.find("[sweep]"));
  int number = 0;
  const auto warnings = [&](const std::string& options) {
    return simulated(s, "--machine m.toml --set cluster.workers=2 --out w" + std::to_string(number++) + options)
        .at("results")
        .at(0)
        .at("warnings")
        .dump();
  };
  const std::string own = "the own collectives of transport shm", sums = "step collectives";
  CHECK(warnings(" --set transport.plugin=shm --set strategy.algorithm=native").find(own) != std::string::npos);
  CHECK(warnings(" --set transport.plugin=shm").find(own) == std::string::npos);
  std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"vgg16\"\nwidth = 8\nsync_batch_norm = true\n"
                                      "[strategy]\nplugin = \"allreduce\"\nalgorithm = \"ring\"\n"
                                      "[transport]\nplugin = \"tcp\"\n[measure]\nsteps = 2\nrepeats = 1\n";
  CHECK(warnings("").find(sums) != std::string::npos);
  CHECK(warnings(" --set model.sync_batch_norm=false").find(sums) == std::string::npos);
}

TEST_CASE("many flows into one port over TCP give a warning, whatever the strategy") {
  const experiment_folder s;
  std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"null\"\ntensors = 1\nbytes = \"64KiB\"\n[measure]\nsteps = "
                                      "2\nwarmup = 1\nrepeats = 1\nbaseline = false\n[cluster]\nworkers = 17\n";
  int number = 0;
  const auto warns = [&](const std::string& options) {
    return simulated(s, "--machine m.toml --out i" + std::to_string(number++) + " " + options)
               .at("results")
               .at(0)
               .at("warnings")
               .dump()
               .find("flows meet at a port") != std::string::npos;
  };
  const std::string servers = "--set strategy.plugin=sync_ps --set cluster.servers=1 ";
  CHECK(warns(servers + "--set transport.plugin=tcp --set cluster.hosts=17"));
  CHECK(warns(servers + "--set transport.plugin=auto --set cluster.hosts=17"));
  CHECK(warns(servers + "--set transport.plugin=shaped --set transport.over=tcp --set transport.bandwidth=1Gbit/s"));
  CHECK_FALSE(warns(servers + "--set transport.plugin=tcp")); // one host
  CHECK_FALSE(
      warns(servers + "--set transport.plugin=tcp --set cluster.workers=16 --set cluster.hosts=17")); // 15 flows
  const std::string sharded = "--set strategy.plugin=allreduce --set strategy.algorithm=sharded "
                              "--set transport.plugin=tcp --set cluster.hosts=17";
  CHECK(warns(sharded));
  CHECK_FALSE(warns(sharded + " --set strategy.algorithm=ring"));
}

TEST_CASE("the transport auto has the costs of shm on one host, and of tcp on several") {
  const experiment_folder s;
  std::ofstream(s.path / "m.toml") << machine << "[transport.shm]\noverhead = \"1us\"\n";
  std::ofstream(s.path / "x.toml") << experiment.substr(0, experiment.find("[sweep]"));
  int number = 0;
  const auto rate = [&](const std::string& options) {
    return simulated(s, "--machine m.toml --set cluster.workers=4 --out t" + std::to_string(number++) + " " + options)
        .at("results")
        .at(0)
        .at("samples_per_second")
        .at("median")
        .get<double>();
  };
  const std::string of_auto = "--set transport.plugin=auto", hosts = " --set cluster.hosts=2";
  CHECK(rate(of_auto) == rate("--set transport.plugin=shm"));
  CHECK(rate(of_auto) > rate("--set transport.plugin=tcp"));
  CHECK(rate(of_auto + hosts) == rate("--set transport.plugin=tcp" + hosts));
}

TEST_CASE("a host leaves: the run ends there, but for a strategy that survives it") {
  const experiment_folder s;
  std::string plain = experiment.substr(0, experiment.find("[sweep]"));
  plain.erase(plain.find("algorithm"), plain.find("[transport]") - plain.find("algorithm"));
  std::ofstream(s.path / "x.toml") << plain;
  const auto outcome_of = [&](const std::string& leaves, const std::string& options) {
    std::ofstream(s.path / "n.toml") << "[[network.host]]\nhosts = 2\n" << leaves << "\n";
    fs::remove_all(s.path / "a");
    return program(s, "simulate x.toml --machine m.toml --network n.toml --format json --progress never --out a "
                      "--set cluster.workers=4 --set cluster.hosts=4 --set measure.repeats=1 " +
                          options);
  };
  const outcome ends = outcome_of("leaves_after = 3", "");
  CHECK(ends.code == 1);
  CHECK(ends.err.find("host 2 leaves after step 3, at 0.") != std::string::npos);
  CHECK(ends.err.find("the run ends there, as strategy allreduce does not survive a death") != std::string::npos);
  CHECK(outcome_of("leaves_after = 9", "").code == 0); // after the last step
  const std::string survivor =
      "--plugin-path " REGATTA_BUILD "/tests/conformance/broken --set strategy.plugin=survivor "
      "--set measure.steps=20 ";
  const auto result = [&](const std::string& leaves) {
    const outcome o = outcome_of(leaves, survivor);
    INFO(o.err);
    REQUIRE(o.code == 0);
    return parsed(o.out).at("results").at(0);
  };
  const json stays = result(""), step = result("leaves_after = 10"), time = result("leaves_at = \"300ms\"");
  const auto rate = [](const json& entry) { return entry.at("samples_per_second").at("median").get<double>(); };
  CHECK(rate(step) < rate(stays));
  CHECK(rate(step) > 0.7 * rate(stays)); // three of four workers, whose exchange is shorter
  CHECK(rate(time) < rate(stays));
  CHECK(step.at("warnings").dump().find("host 2 leaves after step 10, at ") != std::string::npos);
  // The exported operations are those of the run in which the host leaves.
  const auto sent_by_2 = [&](const std::string& leaves) {
    REQUIRE(outcome_of(leaves, survivor + "--export goal").code == 0);
    const std::string goal = read(s.path / "a/operations.goal");
    const std::size_t begin = goal.find("rank 2 {"), end = goal.find("rank 3 {");
    REQUIRE(end != std::string::npos);
    return std::ranges::count(goal.substr(begin, end - begin), '\n');
  };
  CHECK(sent_by_2("leaves_after = 10") < 0.7 * static_cast<double>(sent_by_2("")));
}

TEST_CASE("--export goal writes the operations of each case, once") {
  const experiment_folder s;
  const json d = simulated(s, "--machine m.toml --out a --export goal --set measure.steps=1");
  const json plain = simulated(s, "--machine m.toml --out b --set measure.steps=1");
  CHECK(d.at("results") == plain.at("results")); // not folded, with the same figures
  const std::string alone = read(s.path / "a/operations-1.goal"), two = read(s.path / "a/operations-2.goal");
  CHECK(alone.find("num_ranks 1\n") != std::string::npos);
  CHECK(alone.find("calc ") != std::string::npos);
  CHECK(alone.find("send ") == std::string::npos);
  CHECK(two.find("// allreduce, 2 workers, 0 servers, 2 steps; times in ns\n// ends at ") == 0);
  CHECK(two.find("o 5000, g 0, G 0.8, O 0.1\nnum_ranks 2\n") != std::string::npos);
  CHECK(two.find("b to 1 tag ") != std::string::npos);
  CHECK(two.find("b from 1 tag ") != std::string::npos);
  CHECK(!fs::exists(s.path / "b/operations-1.goal"));
  CHECK(program(s, "simulate x.toml --machine m.toml --export trace").code == 2);
}

TEST_CASE("the links of the transport shaped are those of a simulation, of which the network passes on its goodput") {
  const experiment_folder s;
  std::ofstream(s.path / "n.toml") << "[network]\ngoodput = 0.5\n";
  const auto step = [&](const std::string& options) {
    return simulated(s, "--machine m.toml --set cluster.workers=2 --set measure.repeats=1 --set measure.baseline=false "
                        "--set transport.plugin=shaped --set strategy.bucket=4MiB " +
                            options)
        .at("results")
        .at(0)
        .at("time")
        .at("exposed_communication")
        .get<double>();
  };
  // A ring of two sends 4 MiB a step, after the backward pass, in a bucket of one link's rate.
  const double at_100 = step("--out a --set transport.bandwidth=100Mbit/s");
  CHECK(at_100 > 4.0 * (1 << 20) * 8 / 100e6);
  CHECK(step("--out b --set transport.bandwidth=50Mbit/s") == doctest::Approx(2 * at_100).epsilon(0.02));
  CHECK(step("--out c --set transport.bandwidth=100Mbit/s --network n.toml") ==
        doctest::Approx(2 * at_100).epsilon(0.02));
  CHECK(step("--out d --set transport.bandwidth=100Mbit/s --set transport.latency=100ms") > at_100 + 0.19);
}

TEST_CASE("tensors that must not be compressed do not keep the others from it") {
  const experiment_folder s;
  // ResNet's batch norm is exact; its convolutions have nearly all of the bytes.
  std::ofstream(s.path / "y.toml") << "model.plugin = \"resnet50\"\nmodel.input = \"cifar10\"\nmodel.depth = 18\n"
                                      "train.kernels = \"fixed\"\ntransport.plugin = \"tcp\"\ncluster.workers = 2\n"
                                      "measure = { warmup = 1, steps = 2, repeats = 1, baseline = false }\n"
                                      "strategy = { plugin = \"dgc\", sparsity = [0.99] }\n";
  const outcome o = program(s, "simulate y.toml --machine m.toml --format json --progress never --out a");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const json r = parsed(o.out).at("results").at(0);
  CHECK(r.at("bytes").at("sent_per_step").at("worker").get<double>() < 0.05 * 4 * r.at("parameters").get<double>());
}

TEST_CASE("allreduce chooses its algorithm as in a real run, and a native collective counts its bytes") {
  const experiment_folder s;
  const std::string options = "--set transport.plugin=shm --set strategy.algorithm=auto --set measure.baseline=false "
                              "--set measure.repeats=1 --set cluster.workers=2 --format json --progress never ";
  std::ofstream(s.path / "x.toml") << experiment.substr(0, experiment.find("[sweep]"));
  int number = 0;
  for (const char* bucket : {"1MiB", "64KiB"}) {
    const std::string size = std::string("--set model.bytes=") + bucket + " --set strategy.bucket=" + bucket;
    const std::string out = " --out " + std::to_string(number++);
    const outcome there = program(s, "simulate x.toml --machine m.toml " + options + size + out);
    INFO(there.err);
    REQUIRE(there.code == 0);
    const outcome here = program(s, "run x.toml " + options + size + out + "r");
    REQUIRE(here.code == 0);
    const json a = parsed(there.out).at("results").at(0), b = parsed(here.out).at("results").at(0);
    CHECK(a.at("fingerprint").at("algorithms") == b.at("fingerprint").at("algorithms"));
    CHECK(a.at("given_bytes").get<double>() > 0);
    for (const json& warning : a.at("warnings")) CHECK(warning.get<std::string>().find("auto") == std::string::npos);
  }
}

TEST_CASE("a simulated result is not compared with a measured one") {
  const experiment_folder s;
  simulated(s, "--machine m.toml --out a");
  REQUIRE(program(s, "run x.toml --out b --set measure.baseline=false").code == 0);
  const outcome o = program(s, "compare a b");
  CHECK(o.out.find("A is simulated, B is measured") != std::string::npos);
}

TEST_CASE("a simulated step of sparse tables has the bytes of a real one, where every row is touched") {
  const experiment_folder s;
  std::ofstream(s.path / "x.toml") << R"(
[model]
plugin = "ctr"
rows = 40
hidden = [8]
[data]
source = "random"
[train]
batch = 64
[cluster]
servers = 2
workers = 2
colocate = true
[transport]
plugin = "shm"
[measure]
warmup = 2
steps = 4
repeats = 1
baseline = false
[strategy.allreduce]
algorithm = "ring"
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps"]
)"; // of asynchronous strategies, the timed region of a real run cuts messages of a step apart
  const json there = simulated(s, "--machine m.toml --out a");
  const outcome o = program(s, "run x.toml --format json --progress never --out b");
  REQUIRE(o.code == 0);
  const json here = parsed(o.out);
  for (std::size_t i = 0; i < 2; ++i) {
    CAPTURE(i);
    const auto bytes = [&](const json& d) { return d.at("results").at(i).at("given_bytes").get<std::int64_t>(); };
    const std::int64_t simulated = bytes(there), measured = bytes(here);
    CHECK(measured <= simulated);
    // Each rank counts from the begin of its own timed region. Before that, its server may have sent the other worker,
    // which has begun, half of the rows for the first step.
    CHECK(measured >= simulated - (i == 0 ? 0 : 2 * 40 / 2 * 10 * 4));
    CHECK(simulated > 2 * 4 * 40 * 10 * 4);
  }
}

TEST_CASE("simulations side by side give the records of one after the other, in their order") {
  const experiment_folder s;
  const std::string options = "--machine m.toml --progress never --sweep strategy.algorithm=ring,sharded ";
  const auto records = [&](const std::string& out, const char* jobs) {
    const outcome o = program(s, "simulate x.toml " + options + "--out " + out + " --jobs " + jobs);
    INFO(o.err);
    REQUIRE(o.code == 0);
    std::string text = read(s.path / out / "records.jsonl");
    return text.substr(text.find('\n')); // the first has the date
  };
  const std::string one = records("a", "1");
  CHECK(std::count(one.begin(), one.end(), '\n') > 8);
  CHECK(records("b", "4") == one);
}

TEST_CASE("--resume keeps the finished runs, and refuses other machines and measured runs") {
  const experiment_folder s;
  const json whole = simulated(s, "--machine m.toml --out a");
  const std::string text = read(s.path / "a/records.jsonl");
  std::size_t end = 0; // the context and three runs, as if it had been interrupted there
  for (int line = 0; line < 4; ++line) end = text.find('\n', end) + 1;
  std::ofstream(s.path / "a/records.jsonl") << text.substr(0, end);
  CHECK(program(s, "simulate x.toml --machine m.toml --out a").code == 2);
  const json resumed = simulated(s, "--machine m.toml --out a --resume");
  CHECK(resumed.at("results") == whole.at("results"));
  CHECK(read(s.path / "a/records.jsonl").substr(0, end) == text.substr(0, end));
  CHECK(program(s, "simulate x.toml --machine m.toml --resume").err.find("expected --out DIR") != std::string::npos);
  std::ofstream(s.path / "m.toml", std::ios::app) << "# another file\n";
  const outcome other = program(s, "simulate x.toml --machine m.toml --out a --resume");
  CHECK(other.code == 2);
  CHECK(other.err.find("the machine or the network file differs") != std::string::npos);
  const outcome measured = program(s, "run x.toml --out a --resume");
  CHECK(measured.code == 2);
  CHECK(measured.err.find("cannot resume") != std::string::npos);
}

TEST_CASE("a machine file of the model with other parameters gives a warning") {
  const experiment_folder s;
  const json first = simulated(s, "--machine m.toml").at("results").at(0);
  std::ofstream(s.path / "m.toml", std::ios::app)
      << "[model]\nplugin = \"null\"\nfingerprint = " << first.at("fingerprint").at("model") << "\n";
  const auto warned = [&](const std::string& options) {
    const json entry = simulated(s, "--machine m.toml " + options).at("results").at(0);
    return entry.at("warnings").dump().find("computing times of the model with other parameters") != std::string::npos;
  };
  CHECK_FALSE(warned(""));
  CHECK(warned("--set model.bytes=2MiB"));
}

TEST_CASE("records of a simulation that cannot be written are said at once, and fail the campaign at its end") {
  const experiment_folder s;
  // Files may have 64 KiB, which the records of the last cases exceed.
  const outcome o = program(s,
                            "simulate x.toml --machine m.toml --out a --progress never --set measure.steps=300 "
                            "--sweep cluster.workers=2,3,4,5,6",
                            "ulimit -f 128; trap '' XFSZ;");
  INFO(o.err);
  CHECK(o.code == 1);
  const std::size_t first = o.err.find("File too large; the campaign goes on, and writing is tried again");
  REQUIRE(first != std::string::npos);
  CHECK(o.err.find("File too large; the campaign goes on", first + 1) == std::string::npos);
  CHECK(o.err.find("results are missing on the disk") != std::string::npos);
}

TEST_CASE("a simulated result says so to programs, in claims, and where it would pass for a measurement") {
  const experiment_folder s;
  std::ofstream(s.path / "x.toml", std::ios::app) << "[[claim]]\nmetric = \"efficiency\"\nleft = { "
                                                     "cluster.workers = 2 }\nat_least = 0.1\n";
  const outcome o = program(s, "simulate x.toml --machine m.toml --out a --format json --progress json");
  INFO(o.err);
  REQUIRE(o.code == 0);
  CHECK(parsed(o.out).at("claims").at(0).at("simulated") == true);
  CHECK(o.err.find("\"kind\":\"progress\"") != std::string::npos);
  CHECK(o.err.find("\"kind\":\"end\"") != std::string::npos);
  CHECK(program(s, "report a").out.find("(simulated)") != std::string::npos);
  for (const char* command : {"artifact a -o a.tar.gz", "run --again a"}) {
    const outcome refused = program(s, command);
    CHECK(refused.code == 2);
    CHECK(refused.err.find("expected a measured result, got a simulated one") != std::string::npos);
  }
}

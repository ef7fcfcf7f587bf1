// SPDX-License-Identifier: Apache-2.0
//
// Models with sparse tables on a fake device (streams.hpp). Dense weights, gradients and state are in its memory, which
// the host cannot touch; the rows of a step are in pinned memory, which the device reads and writes as late as
// possible.
#include "device_runs.hpp"

#include "data/generate_datasets.hpp"

using namespace device_runs;

namespace {

// The experiment with another model and its data.
std::string with(const std::string& model, const std::string& data = "source = \"random\"") {
  const std::string rest = "[train]", all = experiment;
  return "[model]\n" + model + "[data]\n" + data + "\n" + all.substr(all.find(rest));
}
const std::string ctr = with("plugin = \"ctr\"\nrows = 200\nhidden = [16]\n"),
                  simnet = with("plugin = \"simnet_bow\"\nvocabulary = 50\ndim = 8\nhidden = 8\n");

} // namespace

TEST_CASE("whoever holds the rows, they train as on the CPU, over tcp and shm") {
  const temporary_folder s;
  const std::string strategies = "--sweep strategy.plugin=allreduce,sync_ps,async_ps";
  same_as_on_the_host(s, strategies, {"late", "1"}, ctr);
  same_as_on_the_host(s, strategies + " --set transport.plugin=shm", {"2"}, ctr);
  same_as_on_the_host(s, strategies + " --set transport.plugin=shm", {"late"}, simnet);
}

TEST_CASE("alone, where a worker is its own server, and where workers drift apart") {
  const temporary_folder s;
  same_as_on_the_host(s, "--set cluster.workers=1 --set transport.plugin=null --set strategy.plugin=none",
                      {"late", "1"}, ctr);
  same_as_on_the_host(s,
                      "--set cluster.colocate=true --set cluster.servers=2 --sweep "
                      "strategy.plugin=sync_ps,async_ps",
                      {"late"}, ctr);
  same_as_on_the_host(s, "--set cluster.workers=1 --sweep cluster.colocate=true,false --set strategy.plugin=geo_ps",
                      {"late", "1"}, ctr);
}

TEST_CASE("every optimiser; the norm over dense weights and rows together; micro-batches; bf16 on the wire") {
  const temporary_folder s;
  same_as_on_the_host(s, "--sweep optimizer.plugin=sgd,momentum,adagrad,adam --set optimizer.weight_decay=0.01",
                      {"late"}, ctr);
  same_as_on_the_host(s, "--sweep strategy.plugin=allreduce,sync_ps --set optimizer.clip_norm=0.05", {"late", "1"},
                      ctr);
  same_as_on_the_host(s, "--set train.accumulate=4 --sweep strategy.plugin=allreduce,sync_ps", {"late", "1"}, ctr);
  same_as_on_the_host(s,
                      "--set strategy.allreduce.wire=bf16 --set strategy.sync_ps.wire=bf16 --sweep "
                      "strategy.plugin=allreduce,sync_ps",
                      {"late"}, simnet);
}

TEST_CASE("evaluations, between steps and at the end") {
  const temporary_folder s;
  regatta::generate_criteo_like(s.path / "data", 200, 1);
  const std::string text =
      with("plugin = \"ctr\"\nrows = 200\nhidden = [16]\n",
           "source = \"dataset\"\nformat = \"criteo\"\npath = \"data/train.tsv\"\nevaluation_path = "
           "\"data/test.tsv\"");
  same_as_on_the_host(s, "--set measure.evaluate_every=3 --sweep strategy.plugin=allreduce,sync_ps", {"late", "1"},
                      text);
}

TEST_CASE("the host waits for the device between steps never, but goes on serving until a step's rows are there") {
  const temporary_folder s;
  CHECK(waits(s, ctr, "", 3) == waits(s, ctr, "", 12));
}

TEST_CASE("a strategy that mistakes a device's memory for the host's is refused, and nothing is touched") {
  const temporary_folder s;
  const std::string options =
      "--set cluster.workers=1 --set strategy.plugin=two_memories --set transport.plugin=null "
      "--sweep strategy.what=copy,add,rows,apply,norm,to_oneself,look,nothing --plugin-path " REGATTA_DEVICE_PLUGINS;
  for (const json& on_cpu : results(s, experiment, options)) CHECK(on_cpu.at("status") == "ok");
  const outcome o = program(s, "run x.toml --progress never --format json --out on-device " + options + on_device);
  const json all = parsed(o.out).at("results");
  const std::vector<std::string> expected = {"copy: names both the host's memory and a device's",
                                             "axpy: names both the host's memory and a device's",
                                             "operations on rows are in the host's memory only",
                                             "apply: the gradient is not where the weights are",
                                             "norm: the norm is not where the weights are",
                                             "the strategy sends to its own rank from a device's memory to the host's",
                                             "the engine refused pointer"};
  REQUIRE(all.size() == expected.size() + 1);
  CHECK(all.back().at("status") == "ok");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(all[i]);
    CHECK(all[i].at("status") != "ok");
    CHECK(all[i].dump().find(expected[i]) != std::string::npos);
  }
}

TEST_CASE("matrix products and functions of a strategy's own, in the stream of the device") {
  const temporary_folder s;
  const std::string options = "--set cluster.workers=1 --set strategy.plugin=own_kernel --set transport.plugin=null "
                              "--plugin-path " REGATTA_DEVICE_PLUGINS;
  same_as_on_the_host(s, options, {"late", "1"});
  const std::string host_only = options + " --set strategy.host_only=true";
  CHECK(results(s, experiment, host_only)[0].at("status") == "ok");
  const outcome o = program(s, "run x.toml --progress never --out on-device " + host_only + on_device);
  CHECK(o.code != 0);
  CHECK(o.err.find("run: the function cannot compute where the buffers are, on a device") != std::string::npos);
}

TEST_CASE("PowerSGD computes on a device what it computes on the host") {
  const temporary_folder s;
  same_as_on_the_host(s, "--set strategy.plugin=powersgd --plugin-path " REGATTA_EXAMPLE_PLUGINS, {"late", "1"});
}

TEST_CASE("a transport that reaches a device's memory alone is handed nothing of the host's") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << experiment;
  const outcome o = program(s, "run x.toml --out result --set strategy.plugin=two_memories --set strategy.what=across "
                               "--set transport.plugin=fake_link" +
                                   on_device);
  CHECK(o.code == 3);
  CHECK(o.err.find("which this transport cannot reach: take alloc() for it") != std::string::npos);
}

TEST_CASE("over a transport that reaches a device's memory alone, models with tables are refused") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << ctr;
  const outcome o = program(
      s, "run x.toml --out result --set strategy.allreduce.lanes=1 --set transport.plugin=fake_link" + on_device);
  CHECK(o.code == 2);
  CHECK(o.err.find("strategy allreduce over transport fake_link does not exchange their rows") != std::string::npos);
}

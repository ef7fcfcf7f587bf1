// SPDX-License-Identifier: Apache-2.0
//
// The engine's side of devices, in real processes on a fake one (streams.hpp). Its arithmetic is the host's; it does
// everything as late as possible or in a random order. So work that lacks a fence gives another result than the CPU's,
// and an access by the host ends the process.
#include "device_runs.hpp"

#include "data/generate_datasets.hpp"

using namespace device_runs;

TEST_CASE("every strategy learns the same over transports that reach the host's memory alone") {
  const temporary_folder s;
  const std::string strategies = "--sweep strategy.plugin=allreduce,sync_ps,async_ps,local_sgd,dgc";
  same_as_on_the_host(s, strategies);
  same_as_on_the_host(s, strategies + " --set transport.plugin=shm", {"1"});
}

TEST_CASE("over a transport that reaches the device's memory, ordered by fences alone") {
  const temporary_folder s;
  const std::string options = "--set optimizer.plugin=adam --set strategy.allreduce.lanes=1 --sweep "
                              "strategy.allreduce.algorithm=native,ring,sharded --sweep optimizer.clip_norm=0.0,0.5 ";
  const json expected = results(s, experiment, options + "--set transport.plugin=shm");
  for (const char* order : {"late", "1"}) {
    INFO("order: ", order);
    compare(expected, results(s, experiment, options + "--set transport.plugin=fake_link" + on_device,
                              "REGATTA_FAKE_DEVICE=" + std::string(order)));
  }
}

TEST_CASE("alone, and where a worker is its own server") {
  const temporary_folder s;
  same_as_on_the_host(s, "--set cluster.workers=1 --set transport.plugin=null --set strategy.plugin=none");
  same_as_on_the_host(s, "--set cluster.colocate=true --set cluster.servers=2 --sweep "
                         "strategy.plugin=sync_ps,async_ps");
  // With several workers the order of their updates would depend on time.
  same_as_on_the_host(s, "--set cluster.workers=1 --sweep cluster.colocate=true,false --set strategy.plugin=geo_ps");
}

TEST_CASE("every optimiser, with and without clipping by the global norm") {
  const temporary_folder s;
  same_as_on_the_host(s, "--sweep optimizer.plugin=sgd,momentum,adagrad,adam --set optimizer.weight_decay=0.01");
  same_as_on_the_host(
      s, "--sweep strategy.plugin=allreduce,sync_ps --set optimizer.plugin=adam --set optimizer.clip_norm=0.5",
      {"late", "1"});
  same_as_on_the_host(s, "--set optimizer.nesterov=true");
  same_as_on_the_host(s, "--set strategy.plugin=dgc --set strategy.dgc.clip_norm=0.5");
}

TEST_CASE("micro-batches; values that cross as bf16") {
  const temporary_folder s;
  same_as_on_the_host(s, "--set train.accumulate=4 --sweep strategy.plugin=allreduce,sync_ps");
  same_as_on_the_host(s, "--set strategy.allreduce.wire=bf16 --set strategy.sync_ps.wire=bf16 "
                         "--sweep strategy.plugin=allreduce,sync_ps --sweep cluster.colocate=true,false");
}

TEST_CASE("batches are read late, out of memory that is held; samples that never change once") {
  const temporary_folder s;
  same_as_on_the_host(s, "--sweep data.source=constant,random --sweep train.accumulate=1,4 --set measure.steps=8",
                      {"late", "1"});
}

TEST_CASE("evaluations, between steps and at the end, of a model with running statistics") {
  const temporary_folder s;
  regatta::generate_cifar10_like(s.path / "data", 40, 1);
  const std::string data = "[data]\nsource = \"random\"";
  std::string text = std::string(experiment).substr(std::string(experiment).find(data) + data.size());
  text = "[model]\nplugin = \"resnet50\"\ninput = \"cifar10\"\ndepth = 18\nwidth = 8\n[data]\nsource = "
         "\"dataset\"\nformat = \"cifar10\"\npath = \"data\"\n"
         "evaluation_path = \"data\"\n" +
         text;
  same_as_on_the_host(s, "--set measure.evaluate_every=3 --set train.batch=4 --set cluster.workers=2", {"late"}, text);
}

TEST_CASE("the host waits for the device between steps never") {
  const temporary_folder s;
  for (const std::string transport : {"tcp", "fake_link"}) {
    const std::string options = "--set strategy.allreduce.lanes=1 --set transport.plugin=" + transport;
    CHECK(waits(s, experiment, options, 3) == waits(s, experiment, options, 12));
  }
}

TEST_CASE("the result has the sensors' readings of each rank's device, and the topology of devices") {
  const temporary_folder s;
  const json r = results(s, experiment, on_device);
  const json expected = {{"name", "fake"},
                         {"driver", "none"},
                         {"utilisation", 0.5}, // mean over the timed region; the reading before it is 1
                         {"memory_used_bytes", 1'000'000'000},
                         {"memory_peak_bytes", 2'000'000'000},
                         {"memory_total_bytes", 4'000'000'000},
                         {"sm_clock_hz", 1.5e9},
                         {"memory_clock_hz", nullptr},
                         {"power_watts", 250.0},
                         {"temperature_celsius", 50.0}};
  CHECK(r.at(0).at("gpu") == json{expected, expected});
  const json host = parsed(read(s.path / "result" / "result.json")).at("context").at("hosts").at(0);
  CHECK(host.at("gpu_topology") == parsed(R"([["CPUs 0-1", "NV4"], ["NV4", "CPUs 0-1"]])"));

  CHECK(results(s, experiment).at(0).at("gpu").is_null());
  CHECK(parsed(read(s.path / "result" / "result.json")).at("context").at("hosts").at(0).at("gpu_topology").is_null());
}

TEST_CASE("forward, backward and update are timed by the device's clock") {
  const temporary_folder s;
  const json alone = results(s, experiment,
                             "--set cluster.workers=1 --set strategy.plugin=none --set "
                             "transport.plugin=null --set train.accumulate=2" +
                                 on_device)
                         .at(0);
  const json& time = alone.at("time");
  CHECK(time.at("forward").get<double>() == doctest::Approx(0.006)); // two micro-batches of 3 ms
  CHECK(time.at("backward").get<double>() == doctest::Approx(0.010));
  // A nanosecond per element; the padding of tensors comes on top.
  const double update = alone.at("parameters").get<double>() * 1e-9;
  CHECK(time.at("update").get<double>() >= update);
  CHECK(time.at("update").get<double>() < update + 100e-9);
  CHECK(time.at("exposed_communication") == 0);
  CHECK(time.at("wait") == 0);
  double sum = 0, step = 0;
  for (const auto& [name, part] : time.items()) sum += part.get<double>();
  for (const json& seconds : alone.at("repeats").at(0).at("case").at("step_seconds").at("per_rank").at(0))
    step += seconds.get<double>() / 4;
  CHECK(sum == doctest::Approx(step));
}

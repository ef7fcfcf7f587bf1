// SPDX-License-Identifier: Apache-2.0
//
// Sums over the workers within a step (regatta.step_collectives/1) where weights and gradients are on a device: the
// numbers are in host memory, and a transport that cannot reach it is refused.
#include "device_runs.hpp"

using namespace device_runs;

namespace {

// The experiment with synchronised batch norm.
const std::string residual = "[model]\nplugin = \"resnet50\"\ninput = \"cifar10\"\ndepth = 18\nwidth = 4\n"
                             "sync_batch_norm = true\n" +
                             std::string(experiment).substr(std::string(experiment).find("[data]"));
const std::string few = "--set train.batch=4 --set measure.steps=2 ";

} // namespace

TEST_CASE("a model on a device sums over the workers what it sums on the host") {
  const temporary_folder s;
  same_as_on_the_host(s, few + "--sweep transport.plugin=tcp,shm --set strategy.allreduce.lanes=2", {"late", "1"},
                      residual);
  same_as_on_the_host(s, few + "--set train.accumulate=2 --set strategy.plugin=sync_ps", {"late"}, residual, "toy");
  // The sums are there: without them each worker has the statistics of its own batch.
  const json with = results(s, residual, few + on_device),
             without = results(s, residual, few + on_device + " --set model.sync_batch_norm=false");
  CHECK(with.at(0).at("loss").at("curve") != without.at(0).at("loss").at("curve"));
}

TEST_CASE("a transport that reaches the device's memory alone is refused, whatever its lanes") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << residual;
  for (const char* lanes : {"false", "true"}) {
    CAPTURE(lanes);
    fs::remove_all(s.path / "r");
    const outcome o = program(s, "run x.toml --progress never --out r --set strategy.allreduce.lanes=1 --set "
                                 "transport.plugin=fake_link --set transport.claims_lanes=" +
                                     std::string(lanes) + " " + few + on_device);
    CHECK(o.code == 2);
    CHECK_MESSAGE(o.err.find("model resnet50 sums over all workers within a step (such as synchronised batch norm), "
                             "which needs independent lanes and the host's memory: use shm or tcp instead of "
                             "fake_link") != std::string::npos,
                  o.err);
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// Whole runs with train.device = "cuda" on the emulated GPU (emulated/streams.hpp): they must train as on the CPU, with
// every strategy and transport and in every precision.
#include "emulated_run.hpp"

#include <cmath>

using namespace emulated_run;

namespace {

void check_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  REQUIRE(a.size() == 8);
  REQUIRE(b.size() == 8);
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(a[i] - b[i]) <= tolerance * std::abs(a[i]));
  }
}

} // namespace

TEST_CASE("a run on the GPU has the CPU's losses") {
  for (const std::string& toml :
       {mlp, experiment("plugin = \"bert\"\nlayers = 1\nhidden = 32\nheads = 4\nvocabulary = 50\npositions = 8\n"
                        "sequence = 8\npredictions = 2\n")}) {
    const course cpu = train(toml, alone + "--set train.device=cpu");
    check_close(cpu.losses, train(toml, alone + gpu).losses, 1e-4);
    check_close(cpu.losses, train(toml, alone + gpu + "--set train.accumulate=3").losses, 1e-4);
    for (const char* precision : {"bf16", "fp16"}) {
      CAPTURE(precision);
      check_close(cpu.losses, train(toml, alone + gpu + "--set train.precision=" + precision).losses, 1e-2);
    }
  }
}

TEST_CASE("the order in which streams go on changes nothing") {
  for (const std::string& options :
       {alone + gpu, alone + gpu + "--set train.accumulate=3 --set train.precision=fp16",
        gpu + "--set cluster.workers=2 --set strategy.plugin=allreduce --set transport.plugin=shm"}) {
    CAPTURE(options);
    const course late = train(mlp, options);
    for (const char* seed : {"1", "2"}) {
      const course drawn = train(mlp, options, std::string("REGATTA_EMULATED_GPU=") + seed);
      CHECK(drawn.losses == late.losses);
      CHECK(drawn.replicas == late.replicas);
    }
  }
}

TEST_CASE("workers on GPUs train as one does, and end with the same weights") {
  const course one = train(mlp, alone + gpu);
  for (const char* options : {"--set strategy.plugin=allreduce --set transport.plugin=shm",
                              "--set strategy.plugin=allreduce --set transport.plugin=tcp",
                              "--set strategy.plugin=sync_ps --set transport.plugin=tcp"}) {
    CAPTURE(options);
    const course two = train(mlp, gpu + "--set cluster.workers=2 " + options);
    check_close(one.losses, two.losses, 1e-4);
    CHECK(two.replicas == true);
  }
}

TEST_CASE("a step of fp16 whose gradients are not finite leaves the weights as they are") {
  // One sample, whose gradient is 1 at the start; times the first loss scale it exceeds fp16.
  for (const char* sparse : {"true", "false"}) {
    CAPTURE(sparse);
    const course c = train(experiment("plugin = \"simnet_bow\"\nvocabulary = 20\ndim = 8\nhidden = 8\nmargin = 2\n"),
                           alone + gpu + "--set train.precision=fp16 --set train.batch=1 --set model.sparse=" + sparse);
    for (const double loss : c.losses) CHECK(std::isfinite(loss));
    CHECK(c.losses.front() > 0);
  }
}

TEST_CASE("models with sparse tables train as on the CPU, their rows in the host's memory") {
  const std::string ctr = experiment("plugin = \"ctr\"\nrows = 200\nhidden = [16]\n");
  const std::string two = gpu + "--set cluster.workers=2 ";
  const std::vector<double> cpu = train(ctr, alone + "--set train.device=cpu").losses;
  for (const std::string& options :
       // The micro-batches of a step together touch more rows than one of them may.
       {alone + gpu, alone + gpu + "--set train.accumulate=3",
        two + "--set strategy.plugin=allreduce --set transport.plugin=tcp",
        two + "--set strategy.plugin=sync_ps --set transport.plugin=shm"}) {
    CAPTURE(options);
    const course late = train(ctr, options);
    check_close(cpu, late.losses, 1e-4);
    CHECK(late.kernels.at("graphs") == "2");
    CHECK(train(ctr, options + " --set train.graphs=false").losses == late.losses);
    CHECK(train(ctr, options, "REGATTA_EMULATED_GPU=1").losses == late.losses);
  }
  check_close(cpu, train(ctr, alone + gpu + "--set train.accumulate=3 --set train.precision=fp16").losses, 1e-2);
}

// SPDX-License-Identifier: Apache-2.0
//
// Needs a GPU: the same experiments as on the CPU must have the same results. Exit code 77 without one.
#define DOCTEST_CONFIG_IMPLEMENT
#include "program.hpp"

#include <cmath>
#include <cstdio>

using namespace regatta::test;

namespace {

std::string experiment(const std::string& model, const std::string& train) {
  return "[model]\n" + model + "[data]\nsource = \"random\"\n[train]\nkernels = \"fixed\"\nscaling = \"strong\"\n" +
         train + "[optimizer]\nlr = 0.01\n[measure]\nwarmup = 0\nsteps = 20\nrepeats = 1\nbaseline = false\n";
}

// The loss of each step, and whether the workers ended with the same weights.
struct course {
  std::vector<double> losses;
  json replicas;
};
course train(const temporary_folder& s, const std::string& toml, const std::string& options) {
  const json r = results(s, toml, options);
  return {r.at(0).at("loss").at("curve").get<std::vector<double>>(), r.at(0).at("replicas_identical")};
}

const std::string alone = "--set strategy.plugin=none --set transport.plugin=null ";

void check_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  REQUIRE(a.size() == 20);
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(a[i] - b[i]) <= tolerance * std::abs(a[i]));
  }
}

} // namespace

namespace {

// Every model that is a graph, small. `tolerance`: of the losses after the first step; it grows with depth and learning
// rate.
struct one {
  const char *model, *train;
  double tolerance;
};
const one models[] = {
    {"plugin = \"mlp\"\nhidden = [64, 32]\ndropout = 0.5\n", "batch = 24\n", 1e-4},
    {"plugin = \"vgg16\"\ninput = \"cifar10\"\n", "batch = 8\n", 1e-3},
    {"plugin = \"resnet50\"\ninput = \"cifar10\"\ndepth = 18\nwidth = 8\n", "batch = 16\n", 1e-3},
    {"plugin = \"se_resnet50\"\ninput = \"cifar10\"\ndepth = 50\nwidth = 8\n", "batch = 16\n", 1e-3},
    {"plugin = \"transformer\"\nlayers = 2\nhidden = 64\nheads = 4\nvocabulary = 500\nsequence = 24\n", "batch = 8\n",
     1e-3},
    {"plugin = \"bert\"\nlayers = 2\nhidden = 64\nheads = 4\nvocabulary = 500\npositions = 32\nsequence = 32\n"
     "predictions = 5\n",
     "batch = 8\n", 1e-3},
    {"plugin = \"ctr\"\nrows = 1001\nhidden = [64, 32]\n", "batch = 64\n", 1e-3},
    {"plugin = \"simnet_bow\"\nvocabulary = 1000\ndim = 32\nhidden = 32\n", "batch = 16\n", 1e-3},
};

} // namespace

TEST_CASE("20 steps on the GPU have the CPU's losses, in every precision") {
  for (const one& m : models) {
    CAPTURE(m.model);
    const temporary_folder s;
    const std::string toml = experiment(m.model, m.train);
    const course cpu = train(s, toml, alone + "--set train.device=cpu");
    const course gpu = train(s, toml, alone + "--set train.device=cuda");
    check_close(cpu.losses, gpu.losses, m.tolerance);
    CHECK(std::abs(cpu.losses[0] - gpu.losses[0]) <= 1e-5 * std::abs(cpu.losses[0]));
    for (const std::string precision : {"bf16", "fp16"}) {
      CAPTURE(precision);
      const course rounded = train(s, toml, alone + "--set train.device=cuda --set train.precision=" + precision);
      CHECK(std::abs(cpu.losses[0] - rounded.losses[0]) <= 1e-2 * std::abs(cpu.losses[0]));
      check_close(cpu.losses, rounded.losses, 5e-2); // rounding errors accumulate over steps
    }
  }
}

TEST_CASE("workers on GPUs train as one does, and end with the same weights") {
  const temporary_folder s;
  const std::string toml = experiment("plugin = \"mlp\"\nhidden = [64, 32]\ndropout = 0.5\n", "batch = 24\n");
  const course one = train(s, toml, alone + "--set train.device=cuda");
  for (const char* options : {"--set strategy.plugin=allreduce --set transport.plugin=shm --set cluster.workers=2",
                              "--set strategy.plugin=sync_ps --set transport.plugin=tcp --set cluster.workers=2"}) {
    CAPTURE(options);
    const course two = train(s, toml, std::string("--set train.device=cuda ") + options);
    check_close(one.losses, two.losses, 1e-4);
    CHECK(two.replicas == true);
  }
}

TEST_CASE("steps that are replayed train as steps that are launched") {
  for (const one& m : models) {
    CAPTURE(m.model);
    const temporary_folder s;
    const std::string toml = experiment(m.model, m.train), model = m.model;
    for (const std::string options :
         {"--set train.precision=bf16 --set train.accumulate=2", "--set train.precision=fp32"}) {
      const std::string on_gpu = alone + "--set train.device=cuda " + options;
      const auto launched = train(s, toml, on_gpu + " --set train.graphs=false").losses;
      const json replayed = results(s, toml, on_gpu).at(0);
      CHECK(replayed.at("loss").at("curve").get<std::vector<double>>() == launched);
      const bool tables = model.find("ctr") != std::string::npos || model.find("simnet") != std::string::npos;
      CHECK((tables || std::stoi(replayed.at("kernels").at("graphs").get<std::string>()) >= 2));
    }
  }
}

TEST_CASE("gradient accumulation on the GPU adds up to the whole batch") {
  const temporary_folder s;
  const std::string toml = experiment("plugin = \"mlp\"\nhidden = [64, 32]\n", "batch = 24\n");
  const course whole = train(s, toml, alone + "--set train.device=cuda");
  const course parts = train(s, toml, alone + "--set train.device=cuda --set train.accumulate=3");
  check_close(whole.losses, parts.losses, 1e-4);
}

int main(int argc, char** argv) {
  if (!fs::exists("/dev/nvidiactl")) {
    std::puts("skipped: there is no NVIDIA GPU on this machine");
    return 77;
  }
  return doctest::Context(argc, argv).run();
}

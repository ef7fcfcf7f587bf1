// SPDX-License-Identifier: Apache-2.0
//
// Networks of convolutions learn, on a set like CIFAR-10, a stated accuracy in a stated number of steps.
#include "program.hpp"

#include "data/generate.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace regatta::test;

TEST_CASE("vgg16 without dropout reads 70 % of unseen images right after 60 steps of 64") {
  const scratch s;
  regatta::make_cifar10_like(s.path / "data", 400, 1);
  const json r = results(s, R"(
[model]
plugin = "vgg16"
input = "cifar10"
dropout = 0.0
[data]
source = "dataset"
format = "cifar10"
path = "data"
evaluation_path = "data"
[train]
batch = 32
kernels = "fixed"
[optimizer]
plugin = "adam"
lr = 0.001
[cluster]
workers = 2
[measure]
warmup = 0
steps = 60
repeats = 1
baseline = false
target = 0.7
)");
  CHECK(r.at(0).at("replicas_identical") == true);
  CHECK(r.at(0).at("metric").at("name") == "top1");
  CHECK(r.at(0).at("metric").at("value").get<double>() >= 0.7);
  CHECK(r.at(0).at("loss").at("last").get<double>() < 0.5 * r.at(0).at("loss").at("first").get<double>());
}

TEST_CASE("a narrow resnet18 reads 70 % of unseen images right after 80 steps of 32, in bf16 as in fp32") {
  const scratch s;
  regatta::make_cifar10_like(s.path / "data", 400, 1);
  std::vector<double> reached;
  for (const char* precision : {"fp32", "bf16"}) {
    const json r = results(s, R"(
[model]
plugin = "resnet50"
input = "cifar10"
depth = 18
width = 16
[data]
source = "dataset"
format = "cifar10"
path = "data"
evaluation_path = "data"
[train]
batch = 32
kernels = "fixed"
emulate = true
precision = ")" + std::string(precision) +
                                  R"("
[optimizer]
plugin = "adam"
lr = 0.003
[strategy]
plugin = "none"
[transport]
plugin = "null"
[measure]
warmup = 0
steps = 80
repeats = 1
baseline = false
)");
    reached.push_back(r.at(0).at("metric").at("value"));
    CHECK(reached.back() >= 0.7);
  }
  CHECK(std::abs(reached[1] - reached[0]) < 0.1);
}

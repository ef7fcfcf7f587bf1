// SPDX-License-Identifier: Apache-2.0
//
// VGG16 learns: on a set like CIFAR-10, by two workers, a stated accuracy in a stated number of steps.
#include "program.hpp"

#include "data/generate.hpp"

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

// SPDX-License-Identifier: Apache-2.0
//
// Models learn from generated data, through files, formats and evaluation between steps.
#include "program.hpp"

#include "data/generate_datasets.hpp"

#include <vector>

using namespace regatta::test;

namespace {

const std::string alone = R"(
[strategy]
plugin = "none"
[transport]
plugin = "null"
[optimizer]
plugin = "adam"
lr = 0.003
[measure]
warmup = 0
steps = 120
evaluate_every = 40
repeats = 1
baseline = false
[train]
kernels = "fixed"
)";

// The metric after the last step, and that it was better than at the first evaluation or as good.
double learnt(const json& results) {
  const json& metric = results.at(0).at("metric");
  CHECK(metric.at("curve").size() == 3);
  return metric.at("value").get<double>();
}

} // namespace

#if REGATTA_JPEG
TEST_CASE("an mlp tells 5 classes of images apart, with threads and a queue in between") {
  const temporary_folder s;
  regatta::generate_imagenet_like(s.path, 5, 60, 40, 1);
  const json r = results(s, R"(
[model]
plugin = "mlp"
hidden = [64]
classes = 5
[data]
source = "queue"
queue_source = "dataset"
threads = 2
format = "imagenet"
path = "train"
evaluation_path = "test"
)" + alone + "batch = 32\n");
  CHECK(learnt(r) >= 0.8); // a guess is right one time in five
  CHECK(r.at(0).at("skipped_records") == 0);
}
#endif

TEST_CASE("ctr finds out who clicks") {
  const temporary_folder s;
  regatta::generate_criteo_like(s.path, 20'000, 1);
  const json r = results(s, R"(
[model]
plugin = "ctr"
rows = 10007
hidden = [32]
[data]
source = "dataset"
format = "criteo"
path = "train.tsv"
evaluation_path = "test.tsv"
)" + alone + "batch = 200\n");
  CHECK(r.at(0).at("metric").at("name") == "auc");
  CHECK(learnt(r) >= 0.7); // a guess has 0.5
}

TEST_CASE("damaged records that are skipped are counted, and said") {
  const temporary_folder s;
  regatta::generate_criteo_like(s.path, 50, 1);
  std::ofstream(s.path / "train.tsv", std::ios::app) << "no click at all\n";
  const json r = results(s, R"(
[model]
plugin = "ctr"
rows = 1009
hidden = [8]
[data]
source = "dataset"
format = "criteo"
path = "train.tsv"
on_bad_record = "skip"
)" + alone + "batch = 51\n", // one round of the data
                         "--set measure.steps=10 --set measure.evaluate_every=0");
  CHECK(r.at(0).at("skipped_records") == 10);
  CHECK(text_of(r.at(0).at("warnings")).find("skipped 10 damaged records of the data") != std::string::npos);
}

TEST_CASE("a schedule in epochs is that of as many steps, on servers too") {
  const temporary_folder s;
  regatta::generate_cifar10_like(s.path / "data", 48, 1); // 240 samples: 10 steps of 24
  const std::string toml = R"(
[model]
plugin = "mlp"
hidden = [16]
[data]
source = "dataset"
format = "cifar10"
path = "data"
[train]
batch = 24
scaling = "strong"
kernels = "fixed"
[strategy]
plugin = "sync_ps"
[cluster]
workers = 2
servers = 2
[optimizer.schedule]
name = "step"
factor = 0.01
[measure]
warmup = 0
steps = 30
repeats = 1
baseline = false
)";
  const auto curve = [&](const std::string& options) {
    return results(s, toml, options).at(0).at("loss").at("curve").get<std::vector<double>>();
  };
  const auto epochs = curve("--set optimizer.schedule.unit=epoch --set optimizer.schedule.milestones=[1.5]");
  CHECK(epochs == curve("--set optimizer.schedule.milestones=[15]"));
  CHECK(epochs != curve("--set optimizer.schedule.milestones=[16]"));
}

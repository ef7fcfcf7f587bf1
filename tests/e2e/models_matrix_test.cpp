// SPDX-License-Identifier: Apache-2.0
//
// Every model at a reduced size under every strategy, two workers in real processes over shm. All train on one batch
// that comes again and again, cut in two. Synchronous strategies come to the loss of one worker with the whole batch;
// the others to one that is finite and, but for async_ps, lower than it was.
#include "program.hpp"

#include <cmath>
#include <map>
#include <set>
#include <string>

using namespace regatta::test;

namespace {

struct trained_model {
  const char* name;
  const char* toml; // under [model]
  const char* optimizer;
  bool tables = false;     // has sparse tables
  bool batch_norm = false; // takes its statistics over a worker's own samples: not what one worker computes
};

const trained_model models[] = {
    {"mlp", "plugin = \"mlp\"\ninput = [3, 8, 8]\nhidden = [16]", "plugin = \"sgd\"\nlr = 0.05"},
    {"vgg16", "plugin = \"vgg16\"\nwidth = 8\nbatch_norm = false\ndropout = 0", "plugin = \"sgd\"\nlr = 0.01"},
    {"resnet50", "plugin = \"resnet50\"\ninput = \"cifar10\"\ndepth = 18\nwidth = 4", "plugin = \"sgd\"\nlr = 0.05",
     false, true},
    {"se_resnet50", "plugin = \"se_resnet50\"\ninput = \"cifar10\"\ndepth = 18\nwidth = 4",
     "plugin = \"sgd\"\nlr = 0.02", false, true},
    {"transformer",
     "plugin = \"transformer\"\nlayers = 1\nhidden = 16\nheads = 2\nvocabulary = 50\nsequence = 6\ndropout = 0",
     "plugin = \"sgd\"\nlr = 0.1"},
    {"bert",
     "plugin = \"bert\"\nlayers = 1\nhidden = 16\nheads = 2\nvocabulary = 50\npositions = 12\nsequence = 12\n"
     "predictions = 3\ndropout = 0",
     "plugin = \"sgd\"\nlr = 0.1"},
    {"word2vec", "plugin = \"word2vec\"\nvocabulary = 100\ndim = 8", "plugin = \"sgd\"\nlr = 2", true},
    {"ctr", "plugin = \"ctr\"\nrows = 300\nslots = 4\nfeatures = 3\nhidden = [8]", "plugin = \"sgd\"\nlr = 0.1", true},
    {"simnet_bow", "plugin = \"simnet_bow\"\nvocabulary = 100\ndim = 8\nhidden = 8\nlength = 5\nmargin = 1",
     "plugin = \"sgd\"\nlr = 0.1", true},
};

std::string experiment(const trained_model& m) {
  return std::string("[model]\n") + m.toml + "\n[optimizer]\n" + m.optimizer + R"(
[train]
batch = 8
scaling = "strong"
kernels = "fixed"
[data]
source = "constant"
[strategy.geo_ps]
k = 2
[strategy.local_sgd]
k = 2
[strategy.dgc]
sparsity = [0.75]
[transport]
plugin = "shm"
[cluster]
servers = 1
colocate = true
[measure]
warmup = 0
repeats = 1
baseline = false
steps = 8
)";
}

double loss(const json& r, const char* when) {
  return r.at("loss").at(when).get<double>();
}

} // namespace

TEST_CASE("every model trains under every strategy that can run it") {
  const temporary_folder s;
  for (const trained_model& m : models) {
    CAPTURE(std::string(m.name));
    const std::string toml = experiment(m);
    json expected = results(s, toml, "--set cluster.workers=1 --set strategy.plugin=none").at(0);
    CHECK(loss(expected, "last") < loss(expected, "first"));
    const json all =
        results(s, toml,
                "--set cluster.workers=2 --sweep strategy.plugin=none,allreduce,sync_ps,async_ps,geo_ps,local_sgd,dgc");
    REQUIRE(all.size() == 7);
    std::set<std::string> refused;
    for (const json& r : all) {
      const std::string strategy = r.at("case").at("strategy.plugin");
      CAPTURE(strategy);
      if (r.at("status") == "skipped") {
        refused.insert(strategy);
        CHECK(r.at("error").get<std::string>().find("sparse tables") != std::string::npos);
        continue;
      }
      REQUIRE(r.at("status") == "ok");
      CHECK(std::isfinite(loss(r, "last")));
      // How far the workers drift apart is the scheduler's choice here; asynchronous_test sees async_ps learn.
      if (strategy != "async_ps") CHECK(loss(r, "last") < loss(r, "first"));
      if (strategy != "allreduce" && strategy != "sync_ps") continue;
      // Under servers a worker of word2vec, whose tensors are tables, keeps nothing to compare.
      const bool held = strategy == "allreduce" || m.name != std::string("word2vec");
      CHECK(r.at("replicas_identical") == (held ? json(true) : json()));
      if (m.batch_norm && strategy == "allreduce") expected = r;
      // The same sums in another order, some steps later.
      for (const char* when : {"first", "last"})
        CHECK(loss(r, when) == doctest::Approx(loss(expected, when)).epsilon(1e-4));
    }
    CHECK(refused == (m.tables ? std::set<std::string>{"dgc", "local_sgd"} : std::set<std::string>{}));
  }
}

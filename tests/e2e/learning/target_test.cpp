// SPDX-License-Identifier: Apache-2.0
//
// Training ends at the first evaluation that reaches measure.target, after the same step on all ranks.
#include "program.hpp"
#include "recompute.hpp"

#include "data/generate_datasets.hpp"

#include <set>
#include <string>

using namespace regatta::test;

namespace {

const std::string pictures = R"(
[model]
plugin = "mlp"
hidden = [32]
[data]
source = "dataset"
format = "cifar10"
path = "data"
evaluation_path = "data/test_batch.bin"
[train]
batch = 16
kernels = "fixed"
[optimizer]
lr = 0.01
[cluster]
workers = 2
[measure]
warmup = 4
steps = 400
evaluate_every = 10
target = 0.6
vary_seed = true
repeats = 2
baseline = false
)";

// The points of a repeat's evaluations, up to the first that reaches the target.
void check_stopped(const json& run, double target) {
  const json& curve = run.at("metric").at("curve");
  REQUIRE(!curve.empty());
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) CHECK(curve[i].at("value").get<double>() < target);
  const json& last = curve.back();
  CHECK(last.at("value").get<double>() >= target);
  CHECK(run.at("steps_to_target") == last.at("step"));
  CHECK(run.at("loss").at("steps").size() == last.at("step"));
  CHECK(last.at("step").get<int>() % 10 == 0);
  CHECK(last.at("step").get<int>() < 400);
  // The warm-up's 4 steps count, evaluations do not.
  const double seconds = run.at("seconds_to_target");
  CHECK(seconds == last.at("training_seconds"));
  CHECK(seconds > last.at("seconds").get<double>());
  CHECK(run.at("evaluation_seconds").get<double>() > 0);
}

} // namespace

TEST_CASE("every strategy stops after the step at which the target is reached, and each repeat has its seed") {
  const temporary_folder s;
  regatta::generate_cifar10_like(s.path / "data", 400, 1);
  const json all = results(s, pictures,
                           "--sweep strategy.plugin=allreduce,sync_ps,async_ps,geo_ps,local_sgd "
                           "--set strategy.sync_ps.bucket=64KiB --set cluster.servers=2");
  REQUIRE(all.size() == 5);
  for (const json& e : all) {
    CAPTURE(e.at("case"));
    CHECK(e.at("target") == json{{"metric", "top1"}, {"value", 0.6}, {"side", "at_least"}, {"reached", 2}});
    CHECK(e.at("steps_to_target").at("n") == 2);
    REQUIRE(e.at("repeats").size() == 2);
    for (const json& r : e.at("repeats")) {
      check_stopped(r.at("case"), 0.6);
      if (e.at("fingerprint").at("synchrony") == "synchronous")
        for (const json& steps : r.at("case").at("counted_steps"))
          CHECK(steps == r.at("case").at("steps_to_target").get<int>() - 4);
    }
    CHECK(e.at("repeats")[0].at("case").at("loss").at("first") != e.at("repeats")[1].at("case").at("loss").at("first"));
    check_recomputed(e);
  }
  CHECK(all[0].at("loss").at("first") == all[1].at("loss").at("first")); // the same seeds in all cases
}

TEST_CASE("a target that no evaluation reaches is null after all steps, and an error") {
  const temporary_folder s;
  regatta::generate_cifar10_like(s.path / "data", 40, 1);
  std::ofstream(s.path / "x.toml") << pictures;
  const std::string run = "run x.toml --progress never --set measure.steps=16 --set measure.vary_seed=false ";
  const outcome o = program(s, run + "--set measure.target=0.999 --format json --out r");
  CHECK(o.code == 4);
  CHECK(o.err.find("wrong: the case: 0 of 2 repeats reached measure.target, top1 at least 0.999; the final top1 is ") !=
        std::string::npos);
  const json e = parsed(o.out).at("results").at(0);
  CHECK(e.at("steps_to_target").is_null());
  CHECK(e.at("seconds_to_target").is_null());
  CHECK(e.at("target").at("reached") == 0);
  CHECK(e.at("repeats")[0].at("case").at("counted_steps") == json{16, 16});
  CHECK(e.at("weights_sha256")[0] == e.at("weights_sha256")[1]); // one seed
  // A metric that shall be small, which the first evaluation is.
  const outcome low = program(s, run + "--set measure.target=1 --set measure.target_is=at_most --out low");
  CHECK(low.code == 0);
  CHECK(low.out.find("top1 ≤ 1 after") != std::string::npos);
}

TEST_CASE("servers of sparse tables stop with their workers") {
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
[train]
batch = 100
kernels = "fixed"
[strategy]
plugin = "sync_ps"
[optimizer]
plugin = "adam"
lr = 0.003
[cluster]
workers = 2
servers = 2
[measure]
warmup = 0
steps = 200
evaluate_every = 10
target = 0.6
repeats = 1
baseline = false
)",
                         "--sweep strategy.plugin=sync_ps,async_ps");
  for (const json& e : r) {
    const json& run = e.at("repeats")[0].at("case");
    CHECK(run.at("steps_to_target").get<int>() < 200);
    CHECK(run.at("loss").at("steps").size() == run.at("steps_to_target"));
    CHECK(run.at("metric").at("curve").back().at("step") == run.at("steps_to_target"));
  }
}

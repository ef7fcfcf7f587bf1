// SPDX-License-Identifier: Apache-2.0
//
// Sums over the workers within a step (regatta.step_collectives/1), and synchronised batch norm, their first user.
#include "processes.hpp"
#include "program.hpp"

#include <cmath>

using namespace regatta::test;

namespace {

// All train on one batch that comes again and again, cut into the workers' parts.
const std::string residual = R"(
[model]
plugin = "resnet50"
input = "cifar10"
depth = 18
width = 4
[optimizer]
plugin = "sgd"
lr = 0.05
[train]
batch = 8
scaling = "strong"
kernels = "fixed"
[data]
source = "constant"
[cluster]
workers = 2
servers = 1
colocate = true
[strategy.geo_ps]
k = 2
[strategy.local_sgd]
k = 2
[strategy.dgc]
sparsity = [0.75]
[measure]
warmup = 0
repeats = 1
baseline = false
steps = 8
)";

// The sums are the same but for the order in which they are added, in fp32; eight steps amplify the differences, to
// below 1e-4 of the loss in every model of models_matrix_test.
constexpr double tolerance = 1e-4;

// The largest difference of the losses of two results, relative to the second one's.
double apart(const json& a, const json& b) {
  double most = 0;
  for (const char* when : {"first", "last"}) {
    const double x = a.at("loss").at(when), y = b.at("loss").at(when);
    most = std::max(most, std::abs(x - y) / y);
  }
  return most;
}

const std::string summing = R"(
[model]
plugin = "summing"
[strategy]
plugin = "allreduce"
[measure]
warmup = 0
steps = 3
repeats = 1
baseline = false
)";

struct failed_run {
  outcome program;
  json entry;
};

// Runs `summing`, which must fail. Returns its only entry.
failed_run fails(const std::string& options) {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << summing;
  failed_run f{program(s, "run x.toml --out r --progress never --format json --plugin-path " REGATTA_SUMMING
                          " --set cluster.workers=2 " +
                              options),
               {}};
  const json all = parsed(f.program.out, true);
  INFO(f.program.err);
  REQUIRE(all.is_object());
  f.entry = all.at("results").at(0);
  return f;
}

void says(const std::string& text, const std::string& part) {
  CAPTURE(part);
  CHECK_MESSAGE(text.find(part) != std::string::npos, text);
}

} // namespace

TEST_CASE("workers with synchronised batch norm compute what one worker computes with the whole batch") {
  const temporary_folder s;
  const std::string sync = "--set model.sync_batch_norm=true ";
  const json one = results(s, residual, "--set cluster.workers=1 --set strategy.plugin=none").at(0);
  CHECK(apart(results(s, residual, sync + "--set cluster.workers=1 --set strategy.plugin=none").at(0), one) == 0);
  // 2 samples are the least that have a variance in the last stage.
  for (const json& r : results(s, residual,
                               sync + "--sweep cluster.workers=2,4 --sweep strategy.plugin=allreduce,sync_ps --sweep "
                                      "transport.plugin=shm,tcp")) {
    CAPTURE(r.at("case").dump());
    REQUIRE(r.at("status") == "ok");
    CHECK(r.at("replicas_identical") == true);
    CHECK(apart(r, one) < tolerance);
    for (const auto& [part, seconds] : r.at("time").items()) { // sums are no part of a pass, and only once subtracted
      CAPTURE(part);
      CHECK(seconds >= 0);
    }
  }
  for (const json& r : results(s, residual, "--sweep cluster.workers=2,4 --set strategy.plugin=allreduce"))
    CHECK(apart(r, one) > 10 * tolerance);
}

TEST_CASE("small buckets, which are exchanged while a later batch norm sums") {
  const temporary_folder s;
  const std::string options = "--set strategy.plugin=allreduce --set strategy.bucket=1KiB --set strategy.lanes=4 "
                              "--set model.sync_batch_norm=true --set train.accumulate=2 ";
  const json two = results(s, residual, options + "--sweep transport.plugin=shm,tcp");
  REQUIRE(two.size() == 2);
  for (const json& r : two) {
    CHECK(r.at("status") == "ok");
    CHECK(r.at("replicas_identical") == true);
  }
  CHECK(two.at(0).at("loss").at("curve") == two.at(1).at("loss").at("curve"));
}

TEST_CASE("synchronised batch norm runs beside every strategy") {
  const temporary_folder s;
  for (const json& r :
       results(s, residual,
               "--set model.sync_batch_norm=true --sweep strategy.plugin=none,async_ps,geo_ps,local_sgd,dgc "
               "--sweep cluster.colocate=true,false")) {
    CAPTURE(r.at("case").dump());
    REQUIRE(r.at("status") == "ok");
    CHECK(std::isfinite(r.at("loss").at("last").get<double>()));
  }
}

TEST_CASE("the baseline and the contention control of synchronised batch norm exchange nothing") {
  const temporary_folder s;
  const json r = results(s, residual,
                         "--set model.sync_batch_norm=true --set measure.baseline=true --set measure.steps=2 "
                         "--set strategy.plugin=allreduce")
                     .at(0);
  CHECK(r.at("status") == "ok");
  CHECK(r.at("contention").is_object());
}

TEST_CASE("the bytes of the sums are counted") {
  const temporary_folder s;
  const json all = results(s, residual,
                           "--set strategy.plugin=allreduce --set transport.plugin=tcp --set cluster.workers=4 "
                           "--sweep model.sync_batch_norm=false,true");
  // Batch norms of ResNet-18: five of a first stage of 4 channels, and five (with a shortcut's) of each other one. Each
  // sends two numbers for each channel and the number of its elements, once in a pass, from each worker to all others.
  std::uint64_t numbers = 0;
  for (const std::uint64_t channels : {4, 8, 16, 32}) numbers += 2 * 5 * (2 * channels + 1);
  const auto given = [&](int i) { return all.at(i).at("given_bytes").get<std::uint64_t>(); };
  CHECK(given(1) - given(0) == 8 * 4 * 3 * numbers * sizeof(double));
}

TEST_CASE("an executor without synchronised batch norm refuses the model") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << residual;
  const outcome o =
      program(s, "run x.toml --out r --progress never --set model.sync_batch_norm=true "
                 "--set strategy.plugin=allreduce --set train.executor=runs_few_ops --plugin-path " REGATTA_SUMMING);
  CHECK(o.code == 77);
  says(o.err, "model resnet50 on executor runs_few_ops: ");
  says(o.err, "no op sync_batch_norm");
}

TEST_CASE("sums are added in ascending order of worker") {
  const temporary_folder s;
  for (const json& r : results(s, summing,
                               "--plugin-path " REGATTA_SUMMING " --sweep transport.plugin=shm,tcp,shaped "
                               "--set cluster.workers=3")) {
    CAPTURE(r.at("case").dump());
    CHECK(r.at("status") == "ok"); // the model checks its sums
  }
}

TEST_CASE("a worker that dies while the others sum ends the run, with its name") {
  for (const char* transport : {"shm", "tcp"}) {
    CAPTURE(transport);
    const failed_run f = fails(std::string("--set model.wrong=dies --set transport.plugin=") + transport);
    CHECK(f.program.code == 1);
    CHECK(f.entry.at("status") == "failed");
    says(f.entry.at("error"), "rank 1 (worker 1");
    says(f.entry.at("error"), "killed by SIGKILL");
  }
}

TEST_CASE("a worker that hangs while the others sum: the dump names the sum") {
  const failed_run f = fails("--set model.wrong=hangs --set measure.timeout=1s");
  CHECK(f.program.code == 1);
  says(f.entry.at("error"), "rank 1 (worker 1, pid ");
  says(f.entry.at("error"), "step 1, forward pass");
  says(f.entry.at("dump"), "sum over workers: numbers of a test");
  says(f.entry.at("dump"), "open: receive from rank 1, lane 0, 24 bytes");
}

TEST_CASE("workers that sum different numbers, and more than they have reserved") {
  const failed_run fewer = fails("--set model.wrong=fewer"), more = fails("--set model.wrong=more");
  CHECK(fewer.entry.at("status") == "failed");
  // Of two ranks that find it, the first one is heard.
  const std::string error = fewer.entry.at("error");
  CHECK_MESSAGE((error.find("the models of the workers sum different numbers") != std::string::npos ||
                 error.find("24 bytes") != std::string::npos),
                error);
  CHECK(more.program.code == 3);
  says(more.entry.at("error"), "the model sums 4 numbers over the workers, but has reserved 3");
}

TEST_CASE("a transport that orders the messages of all lanes is refused") {
  const failed_run f = fails("--set transport.plugin=ordered --set strategy.lanes=1");
  CHECK(f.program.code == 2);
  says(f.program.err, "transport.plugin: model summing sums over all workers within a step");
  says(f.program.err, "independent lanes");
}

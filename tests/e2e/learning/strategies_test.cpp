// SPDX-License-Identifier: Apache-2.0
//
// Strategies that do not compute what one worker would compute learn all the same: on a set like CIFAR-10, in real
// processes, they come to the loss of synchronous training within a stated tolerance; and each reports what it should.
#include "program.hpp"

#include "data/generate_datasets.hpp"

#include <numeric>

using namespace regatta::test;

namespace {

const char* const experiment = R"(
[model]
plugin = "mlp"
hidden = [64]
[data]
source = "dataset"
format = "cifar10"
path = "data"
evaluation_path = "data"
[train]
batch = 32
kernels = "fixed"
[optimizer]
plugin = "momentum"
lr = 0.02
momentum = 0.5
[transport]
plugin = "shm"
[cluster]
workers = 2
servers = 1
colocate = true
[measure]
warmup = 0
steps = 300
repeats = 1
baseline = false
[strategy.async_ps]
bound = 4
[strategy.geo_ps]
k = 5
[strategy.local_sgd]
k = 5
[strategy.dgc]
sparsity = [0.95]
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps", "async_ps", "geo_ps", "local_sgd", "dgc"]
)";

// Mean of the last ten steps: one step's loss is that of 64 samples.
double reached(const json& result) {
  const auto curve = result.at("loss").at("curve").get<std::vector<double>>();
  REQUIRE(curve.size() == 300);
  return std::accumulate(curve.end() - 10, curve.end(), 0.0) / 10;
}

} // namespace

TEST_CASE("every strategy learns what synchronous training learns") {
  const temporary_folder s;
  regatta::generate_cifar10_like(s.path / "data", 400, 1);
  const json all = results(s, experiment);
  std::map<std::string, json> by;
  for (const json& r : all) by[r.at("case").at("strategy.plugin")] = r;
  const double first = by.at("allreduce").at("loss").at("first"), target = reached(by.at("allreduce"));
  INFO("from ", first, " to ", target);
  CHECK(target < 0.7 * first);
  for (const auto& [name, r] : by) {
    INFO(name, ": ", reached(r));
    CHECK(r.at("loss").at("first").get<double>() == doctest::Approx(first).epsilon(1e-4));
    // A tenth of what there was to learn: staleness, local steps and values that come late cost a little at first.
    CHECK(reached(r) < target + 0.1 * (first - target));
    CHECK(r.at("metric").at("value").get<double>() > 0.5);
  }
  CHECK(reached(by.at("sync_ps")) == doctest::Approx(target).epsilon(1e-3));

  const json& staleness = by.at("async_ps").at("strategy").at("staleness");
  std::uint64_t pushes = 0;
  for (const auto& [value, times] : staleness.at("counts").items()) pushes += times.get<std::uint64_t>();
  CHECK(pushes > 0);
  CHECK(staleness.at("max").get<int>() <=
        2 * 4 + 1); // what a bound of 4 allows two workers: tests/matrix/asynchronous_test
  const json& compressed = by.at("dgc").at("strategy");
  CHECK(compressed.at("exchanged_bytes").at("per_step") < compressed.at("dense_bytes").at("per_step"));
  for (const char* time : {"encode_seconds", "wire_seconds", "decode_seconds"})
    CHECK(compressed.at(time).at("per_step").get<double>() > 0);
  CHECK(by.at("geo_ps").at("replicas_identical").is_null());
  for (const char* name : {"dgc", "async_ps", "local_sgd"}) CHECK(by.at(name).at("replicas_identical") == true);
  CHECK(by.at("allreduce").at("strategy").contains("algorithm_sharded")); // its buckets are large
  CHECK(by.at("allreduce").at("fingerprint").at("algorithms") == "sharded");
  CHECK(by.at("sync_ps").at("strategy").is_null());
  CHECK(by.at("sync_ps").at("fingerprint").at("algorithms").is_null());
}

TEST_CASE("sparse tables: async_ps and geo_ps tell clicks as well as sync_ps does") {
  const temporary_folder s;
  regatta::generate_criteo_like(s.path / "data", 10000, 1);
  const json all = results(s, R"(
[model]
plugin = "ctr"
rows = 20011
hidden = [64, 32]
[data]
source = "dataset"
format = "criteo"
path = "data/train.tsv"
evaluation_path = "data/test.tsv"
[train]
batch = 50
kernels = "fixed"
[optimizer]
plugin = "adam"
lr = 0.005
[transport]
plugin = "shm"
[cluster]
workers = 2
servers = 2
colocate = true
[measure]
warmup = 0
steps = 300
repeats = 1
baseline = false
[strategy.async_ps]
bound = 8
[strategy.geo_ps]
k = 10
[sweep]
"strategy.plugin" = ["sync_ps", "async_ps", "geo_ps"]
)");
  const double first = all.at(0).at("loss").at("first"), auc = all.at(0).at("metric").at("value");
  CHECK(auc > 0.7);
  for (const json& r : all) {
    INFO(r.at("case"), ": ", r.at("metric"), " ", r.at("loss").at("last"));
    CHECK(r.at("loss").at("first").get<double>() == doctest::Approx(first).epsilon(1e-4));
    // The published AUC fell by 0.02 between 5 and 20 asynchronous workers.
    CHECK(r.at("metric").at("value").get<double>() > auc - 0.02);
  }
  CHECK(all.at(1).at("strategy").at("staleness").at("max").get<int>() <= 2 * 8 + 1); // two workers, a bound of 8
}

TEST_CASE("a strategy refuses an optimizer that it does not support before anything starts") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"mlp\"\n[cluster]\nworkers = 2\n";
  for (const auto& [options, why] : std::vector<std::pair<std::string, std::string>>{
           {"dgc --set strategy.momentum=0.9 --set optimizer.plugin=momentum", "keep one of them"},
           {"dgc --set optimizer.clip_norm=1.0", "strategy.clip_norm instead"},
           {"dgc --set optimizer.plugin=adam", "cannot do adam"},
           {"async_ps --set optimizer.clip_norm=1.0", "cannot clip by the norm"},
           {"allreduce --set strategy.algorithm=sharded --set strategy.wire=bf16",
            "which sends weights, got \"bf16\""}}) {
    CAPTURE(options);
    for (const char* verb : {"run x.toml --dry-run", "run x.toml --out r"}) {
      const outcome o = program(s, std::string(verb) + " --set strategy.plugin=" + options);
      CHECK(o.code == 2);
      CHECK((o.out + o.err).find(why) != std::string::npos);
      CHECK(!fs::exists(s.path / "r"));
    }
  }
}

// No time is looked at, but how many steps the slow one has done when the other is through. The batch is large, so that
// a step computes for longer than it exchanges.
TEST_CASE("a straggler: nobody waits for it under async_ps, everybody does under allreduce") {
  const temporary_folder s;
  const std::string text = R"(
[model]
plugin = "mlp"
hidden = [16]
[data]
source = "random"
[train]
batch = 512
kernels = "fixed"
[cluster]
workers = 2
servers = 1
straggler = { rank = 1, factor = 16.0 }
[measure]
warmup = 2
steps = 60
repeats = 1
baseline = false
[strategy.geo_ps]
k = 5
[sweep]
"strategy.plugin" = ["allreduce", "async_ps", "geo_ps"]
)";
  const json all = results(s, text);
  const auto steps = [&](std::size_t k, std::size_t worker) {
    return all.at(k).at("repeats").at(0).at("case").at("counted_steps").at(worker).get<int>();
  };
  CHECK(steps(0, 0) == 60);
  CHECK(steps(0, 1) == 60);
  CHECK(steps(1, 0) == 60);
  // A fast worker that waited would leave at most one step open. On a busy machine the exchange, which is as slow for
  // both, takes most of a step, so the slow one can do far more than a 16th.
  CHECK(steps(1, 1) < 50);
  // Of the steps that count, and of no other: when the fast worker is through, the slow one's pushes miss nothing.
  const auto staleness = [&](std::size_t k) -> const json& { return all.at(k).at("strategy").at("staleness"); };
  const auto pushes = [&](std::size_t k) {
    std::uint64_t n = 0;
    for (const auto& [value, times] : staleness(k).at("counts").items()) n += times.get<std::uint64_t>();
    return n;
  };
  CHECK(pushes(1) == steps(1, 0) + steps(1, 1)); // one bucket, one server
  CHECK(staleness(1).at("max").get<int>() >= 3);
  CHECK(pushes(2) == (2 + steps(2, 0)) / 5 + (2 + steps(2, 1)) / 5); // the first period began with the warm-up
  const outcome nobody = program(s, "run x.toml --out again --set cluster.straggler.rank=2");
  CHECK(nobody.code == 2);
  CHECK(nobody.err.find("cluster.straggler.rank: expected a worker from 0 to 1, got 2") != std::string::npos);
}

// Bytes as the transport counts them, headers included: what one side has sent by the region's end the other has
// received, and no more.
TEST_CASE("servers send in the region what workers receive in it, and receive what workers send") {
  const temporary_folder s;
  const json all = results(s, R"(
[model]
plugin = "mlp"
hidden = [16]
[data]
source = "random"
[train]
batch = 4
kernels = "fixed"
[cluster]
workers = 2
servers = 2
[measure]
warmup = 6
steps = 12
repeats = 1
baseline = false
[strategy.geo_ps]
k = 6
[strategy.dgc]
exchange = "servers"
dense_below = 2000
[strategy.async_ps]
bucket = 4096
[sweep]
"strategy.plugin" = ["sync_ps", "async_ps", "geo_ps", "dgc"]
"transport.plugin" = ["shm", "tcp"]
)");
  REQUIRE(all.size() == 8);
  for (const json& r : all) {
    CAPTURE(r.at("case").dump());
    const auto mean = [&](const char* way, const char* role) {
      return r.at("bytes").at(way).at(role).get<double>(); // over as many workers as servers
    };
    CHECK(mean("sent_per_step", "worker") > 100);
    CHECK(mean("sent_per_step", "server") == doctest::Approx(mean("received_per_step", "worker")).epsilon(1e-9));
    CHECK(mean("received_per_step", "server") == doctest::Approx(mean("sent_per_step", "worker")).epsilon(1e-9));
  }
}

// The least ratio of wait to communication under a straggler. A sanitizer makes the exchange itself slow, and does not
// make the straggler's sleep longer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double least_ratio = 0.5;
#else
constexpr double least_ratio = 2;
#endif

// Two workers have the same work, and one of them sleeps 10 times as long as it computes: the other one waits for it
// under every strategy. Bytes are few, so communication is mostly the delay that a busy machine adds. The batch is
// large because the first step, with its compilation, is followed by such a sleep, too: a long step with a small factor
// costs less time than a short one with a large factor.
TEST_CASE("a straggler is waited for, not communicated with, under every strategy that synchronises") {
  const temporary_folder s;
  const std::string text = R"(
[model]
plugin = "mlp"
hidden = [64]
[data]
source = "random"
[train]
batch = 512
kernels = "fixed"
[cluster]
workers = 2
servers = 1
straggler = { rank = 1, factor = 11.0 }
[measure]
warmup = 1
steps = 4
repeats = 1
baseline = false
)";
  const auto check = [&](const std::string& options, double at_least = least_ratio) {
    CAPTURE(options);
    const json all = results(s, text, options);
    REQUIRE(all.size() == 1);
    const json& time = all.at(0).at("time");
    CAPTURE(time.dump());
    const double wait = time.at("wait"), communication = time.at("exposed_communication");
    CHECK(wait > at_least * communication);
    CHECK(wait > time.at("backward").get<double>() / 4); // and there is something to tell apart
  };
  check("--set strategy.plugin=allreduce");
  check("--set strategy.plugin=allreduce --set strategy.algorithm=hierarchical --set transport.plugin=tcp "
        "--set cluster.hosts=2");
  check("--set strategy.plugin=sync_ps");
  check("--set strategy.plugin=sync_ps --set strategy.early=false");
  // The fast worker may be a step ahead, so part of what it is blocked for is the slow one's and part its own pull,
  // which a busy machine stretches. Before waiting was told apart, all of it was communication.
  check("--set strategy.plugin=async_ps --set strategy.bound=1", 0.5);
  check("--set strategy.plugin=local_sgd --set strategy.k=2");
  check("--set strategy.plugin=dgc");
  check("--set strategy.plugin=dgc --set strategy.exchange=servers");
}

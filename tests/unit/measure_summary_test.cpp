// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "../json.hpp"
#include "measure/canary.hpp"
#include "measure/context.hpp"
#include "measure/host.hpp"
#include "measure/summary.hpp"

using namespace regatta;
using namespace regatta::test;
using doctest::Approx;
using nlohmann::json;

namespace {

run_figures run(double rate, const time_parts& time, double samples = 10) {
  run_figures f;
  f.samples_per_second = rate;
  f.batches_per_second = rate / samples;
  f.samples_per_worker_step = samples;
  f.step_seconds = {{time.total(), time.total()}};
  f.time = time;
  f.worker_sent_bytes = 100;
  f.worker_received_bytes = 50;
  f.memory_peak_bytes = {1000, 0};
  f.cpu_seconds = {1, 2};
  f.losses = {2, 1.5, 1};
  f.replicas_identical = true;
  f.kernels = "conv1: jit_wino\nconv2: jit\n";
  f.layout = "nchw";
  return f;
}

case_config two_workers() {
  case_config c;
  c.swept = {{"cluster.workers", 2}};
  c.cluster.workers = 2;
  c.model.id = "mlp";
  c.strategy.id = "allreduce";
  c.transport.id = "shm";
  return c;
}

case_facts weak() {
  case_facts f;
  f.batch_per_worker = 10;
  f.global_batch = 20;
  f.unit = "images";
  return f;
}

// One worker: 100 ms for 10 samples. Two: 110 ms, of which 4 are communication, 2 waiting, 3 slower computing.
const time_parts alone{0.001, 0.030, 0.060, 0.008, 0, 0, 0.001};
const time_parts shared{0.001, 0.031, 0.062, 0.008, 0.004, 0.002, 0.002};

double sum_of(const json& parts) {
  double sum = 0;
  for (const json& part : parts) sum += part.get<double>();
  return sum;
}

json entry(double first_loss, const case_config& config = two_workers()) {
  run_figures f = run(180, shared);
  f.losses = {first_loss, 1};
  f.loss_finite = std::isfinite(first_loss);
  return parsed(text_of(case_entry(config, weak(), {{f, {}, {}}}))); // as it comes back from a file
}

} // namespace

TEST_CASE("weak scaling: efficiency and what it was lost to") {
  const run_figures two = run(2 * 10 / 0.110, shared), one = run(10 / 0.100, alone), both = run(198, alone);
  const json e = case_entry(two_workers(), weak(), {{two, one, both}});
  const double efficiency = e["efficiency"]["median"];
  CHECK(efficiency == Approx(100.0 / 110));
  CHECK(e["speedup"].get<double>() == Approx(200.0 / 110));
  CHECK(e["contention"].get<double>() == Approx(0.99));
  CHECK(e["baseline_samples_per_second"] == 100);
  const json& lost = e["lost"];
  CHECK(lost["compute"].get<double>() == Approx(3.0 / 110));
  CHECK(lost["exposed_communication"].get<double>() == Approx(4.0 / 110));
  CHECK(lost["wait"].get<double>() == Approx(2.0 / 110));
  CHECK(lost["other"].get<double>() == Approx(1.0 / 110));
  CHECK(lost["update"].get<double>() == Approx(0).epsilon(1e-12));
  CHECK(sum_of(lost) == Approx(1 - efficiency).epsilon(1e-12));
  CHECK(sum_of(e["time"]) == Approx(0.110));
}

TEST_CASE("strong scaling: the baseline's parts are scaled to a worker's share") {
  // One worker does 20 samples in 200 ms, two do 10 each in 110.
  time_parts whole = alone;
  for (const auto& [name, part] : time_part_names) whole.*part *= 2;
  case_config config = two_workers();
  config.train.scaling = "strong";
  const json e = case_entry(config, weak(), {{run(20 / 0.110, shared), run(20 / 0.200, whole, 20), {}}});
  CHECK(e["efficiency"]["median"].get<double>() == Approx(10.0 / 11));
  CHECK(e["lost"]["compute"].get<double>() == Approx(3.0 / 110));
  CHECK(sum_of(e["lost"]) == Approx(1 - 10.0 / 11).epsilon(1e-12));
  CHECK(e["contention"].is_null());
}

TEST_CASE("the shares sum to 1 - E whatever the number of repeats and the noise") {
  for (const std::size_t repeats : {1, 2, 3, 4, 5}) {
    std::vector<repeat_figures> runs;
    for (std::size_t i = 0; i < repeats; ++i) {
      time_parts t = shared;
      t.forward += 0.001 * static_cast<double>((i * 7) % 5);
      t.wait += 0.002 * static_cast<double>((i * 3) % 4);
      // The rate is not exactly what the steps say: regions are a bit longer.
      runs.push_back({run(19.7 / t.total(), t), run(10 / alone.total(), alone), {}});
    }
    const json e = case_entry(two_workers(), weak(), runs);
    CHECK(sum_of(e["lost"]) == Approx(1 - e["efficiency"]["median"].get<double>()).epsilon(1e-12));
    CHECK(e["samples_per_second"]["repeats"].size() == repeats);
  }
}

TEST_CASE("the entry has what the contract names, and null where nothing is known") {
  const json e = case_entry(two_workers(), weak(), {{run(180, shared), {}, {}}, {run(200, shared), {}, {}}});
  CHECK(e["status"] == "ok");
  CHECK(e["error"].is_null());
  CHECK(e["case"] == json{{"cluster.workers", 2}});
  CHECK(e["workers"] == 2);
  CHECK(e["servers"] == 0);
  CHECK(e["samples_per_second"]["median"] == 190);
  CHECK(e["samples_per_second"]["min"] == 180);
  CHECK(e["samples_per_second"]["max"] == 200);
  CHECK(e["samples_per_second"]["cv"].get<double>() == Approx(std::sqrt(200.0) / 190));
  CHECK(e["throughput"] == json{{"unit", "images/s"}, {"scope", "global"}, {"median", 190.0}});
  CHECK(e["step_seconds"]["per_rank"].size() == 1);
  CHECK(e["step_seconds"]["per_rank"][0].size() == 4); // two steps of two repeats
  for (const char* unknown : {"efficiency", "speedup", "contention", "baseline_samples_per_second", "lost", "metric"})
    CHECK_MESSAGE(e.at(unknown).is_null(), unknown);
  CHECK(e["bytes"]["sent_per_step"] == json{{"worker", 100.0}, {"server", nullptr}});
  CHECK(e["memory_peak_bytes"] == json{1000, nullptr});
  CHECK(e["cpu_seconds"] == json{1.0, 2.0});
  CHECK(e["loss"]["first"] == 2);
  CHECK(e["loss"]["last"] == 1);
  CHECK(e["loss"]["curve"].size() == 3);
  CHECK(e["replicas_identical"] == true);
  CHECK(e["kernels"] == json{{"conv1", "jit_wino"}, {"conv2", "jit"}});
  for (const char* name : {"model", "optimizer", "synchrony", "precision", "data", "kernels", "layout_id"})
    CHECK_MESSAGE(e["fingerprint"].at(name).is_string(), name);
}

TEST_CASE("a case that did not run has the same members") {
  const json ok = case_entry(two_workers(), weak(), {{run(180, shared), {}, {}}});
  const json failed = case_entry(two_workers(), weak(), "failed", "rank 1 died");
  CHECK(failed["status"] == "failed");
  CHECK(failed["error"] == "rank 1 died");
  for (const auto& member : ok.items()) CHECK_MESSAGE(failed.contains(member.key()), member.key());
  CHECK(failed["samples_per_second"].is_null());
  CHECK(check_results(json::array({failed})).empty());
}

TEST_CASE("replicas are not asked of those who need not agree") {
  case_config none = two_workers();
  none.strategy.id = "none";
  CHECK(case_entry(none, weak(), {{run(1, shared), {}, {}}})["replicas_identical"].is_null());
  case_facts asynchronous = weak();
  asynchronous.synchronous = false;
  const json e = case_entry(two_workers(), asynchronous, {{run(1, shared), {}, {}}});
  CHECK(e["replicas_identical"].is_null());
  CHECK(e["fingerprint"]["synchrony"] == "asynchronous");
  run_figures ends_together = run(1, shared);
  ends_together.must_agree = true;
  ends_together.replicas_identical = false;
  CHECK(case_entry(two_workers(), asynchronous, {{ends_together, {}, {}}})["replicas_identical"] == false);
  CHECK(case_entry(none, weak(), {{ends_together, {}, {}}})["replicas_identical"].is_null());
}

TEST_CASE("what spoils a result is said, once") {
  case_facts facts = weak();
  facts.warnings = {"oversubscribed: 4 ranks x 1 thread on 2 cores"};
  run_figures slow = run(100, shared), fast = run(120, shared);
  slow.steal = 0.034;
  slow.warnings = fast.warnings = {"warm-up raised from 2 to 5 steps"};
  const json warnings = case_entry(two_workers(), facts, {{slow, {}, {}}, {fast, {}, {}}})["warnings"];
  const auto has = [&](const std::string& text) { return std::count(warnings.begin(), warnings.end(), text); };
  CHECK(has("oversubscribed: 4 ranks x 1 thread on 2 cores") == 1);
  CHECK(has("warm-up raised from 2 to 5 steps") == 1);
  CHECK(has("spread: samples/s of the case differ by more than 5 % between repeats") == 1);
  CHECK(has("steal: the hypervisor gave 3 % of the CPU time to others") == 1);
  CHECK(warnings.size() == 4 + (build_warning() ? 1 : 0));
}

TEST_CASE("fingerprints differ where what is computed differs, and only there") {
  const case_config a = two_workers();
  case_config b = a;
  b.cluster.threads = 7;
  b.transport.id = "tcp";
  CHECK(fingerprint(a, weak(), "k", "l") == fingerprint(b, weak(), "k", "l"));
  b.optimizer.lr = 0.5;
  json fa = fingerprint(a, weak(), "k", "l"), fb = fingerprint(b, weak(), "k", "l");
  CHECK(fa["optimizer"] != fb["optimizer"]);
  fa.erase("optimizer");
  fb.erase("optimizer");
  CHECK(fa == fb);
  b.model.parameters["hidden"] = 3;
  CHECK(fingerprint(a, weak(), "k", "l")["model"] != fingerprint(b, weak(), "k", "l")["model"]);
  case_facts normalised = weak(), halves = weak();
  normalised.batch_statistics = halves.batch_statistics = true;
  halves.batch_per_worker = 5;
  CHECK(fingerprint(a, normalised, "", "")["data"] != fingerprint(a, halves, "", "")["data"]);
  CHECK(fingerprint(a, weak(), "", "")["kernels"].is_null());
}

TEST_CASE("canary: the first loss agrees, every loss is finite, replicas agree") {
  case_config other = two_workers();
  other.swept = {{"cluster.workers", 2}, {"strategy.plugin", "sync_ps"}};
  CHECK(check_results({entry(2.302585), entry(2.302590, other)}).empty());
  CHECK(check_results({entry(2.302585), entry(2.31, other)}) ==
        std::vector<std::string>{"workers 2, strategy sync_ps: the loss of the first step is 2.31, "
                                 "but 2.302585 for workers 2, on the same samples"});
  other.seed = 2; // other samples: nothing to compare
  CHECK(check_results({entry(2.302585), entry(2.31, other)}).empty());
  CHECK(check_results(json::array({entry(std::numeric_limits<double>::quiet_NaN())})) ==
        std::vector<std::string>{"workers 2: the loss is not finite"});
  json apart = entry(2.3);
  apart["replicas_identical"] = false;
  CHECK(check_results(json::array({apart})) ==
        std::vector<std::string>{"workers 2: the workers ended with different weights"});
  json silent = entry(2.3);
  silent["loss"] = nullptr; // a model without a loss
  CHECK(check_results({silent, silent}).empty());
}

TEST_CASE("a target is asked of the metric only where there is one") {
  json e = entry(2.3);
  CHECK_FALSE(missed_target(e, 0));
  CHECK(missed_target(e, 0.5) == "workers 2: measure.target is 0.5, but nothing was evaluated");
  e["metric"] = {{"name", "top1"}, {"value", 0.6}};
  CHECK_FALSE(missed_target(e, 0.5));
  CHECK(missed_target(e, 0.7) == "workers 2: top1 is 0.6, measure.target asks for at least 0.7");
  e["metric"]["name"] = "perplexity";
  CHECK_FALSE(missed_target(e, 0.7));
  CHECK(missed_target(e, 0.5) == "workers 2: perplexity is 0.6, measure.target asks for at most 0.5");
}

TEST_CASE("the context says where and how") {
  const json host = describe_host(std::numeric_limits<double>::infinity());
  for (const char* name :
       {"name", "cpu", "cores", "memory_bytes", "cgroup_cpus", "governor", "gpus", "interfaces", "kernel", "libraries"})
    CHECK_MESSAGE(host.contains(name), name);
  CHECK(host["cores"] >= 1);
  CHECK(host["memory_bytes"] > 1 << 20);
  CHECK(host["cgroup_cpus"].is_null());
  CHECK(describe_host(1.5)["cgroup_cpus"] == 1.5);
  experiment e;
  e.name = "sweep";
  e.file = "a.toml";
  e.swept = {"train.batch", "cluster.workers"};
  for (const int batch : {64, 32})
    for (const int workers : {1, 2}) {
      case_config& c = e.cases.emplace_back(two_workers());
      c.swept = {{"train.batch", batch}, {"cluster.workers", workers}};
    }
  e.cases[0].transport.given = {{"ring", "1MiB"}};
  const json context = make_context("regatta run a.toml", e, json::array({host}), json::array(), {"w"});
  CHECK(context["experiment"]["sweep"] == json::array({{{"key", "train.batch"}, {"values", {64, 32}}},
                                                       {{"key", "cluster.workers"}, {"values", {1, 2}}}}));
  CHECK(context["experiment"]["strategy"]["plugin"] == "allreduce");
  CHECK(context["given"]["transport"] == json{{"ring", "1MiB"}});
  CHECK(context["experiment"]["experiment"]["file"] == "a.toml");
  CHECK(context["hosts"].size() == 1);
  CHECK(context["command"] == "regatta run a.toml");
  CHECK(context["regatta"].is_string());
  CHECK(context["warnings"] == json{"w"});
  CHECK(context["date"].get<std::string>().size() == 20);
  CHECK(command_line({"regatta", "run", "a b.toml", "--set", "x='1'", ""}) ==
        R"(regatta run 'a b.toml' --set 'x='\''1'\''' '')");
}

TEST_CASE("a strategy's own report: counts of all repeats together, sums by their median, null without any") {
  run_figures f = run(180, shared), g = f, h = f;
  f.strategy.counts["staleness"] = {{0, 3}, {2, 1}};
  g.strategy.counts["staleness"] = {{2, 4}};
  f.strategy.sums["encode_seconds"] = 0.1;
  g.strategy.sums["encode_seconds"] = 0.4;
  h.strategy.sums["encode_seconds"] = 0.2;
  const json e = case_entry(two_workers(), weak(), {{f, {}, {}}, {g, {}, {}}, {h, {}, {}}});
  const json& staleness = e["strategy"]["staleness"];
  CHECK(staleness["counts"] == json{{"0", 3}, {"2", 5}});
  CHECK(staleness["mean"].get<double>() == Approx(10.0 / 8));
  CHECK(staleness["max"] == 2);
  CHECK(e["strategy"]["encode_seconds"]["per_step"].get<double>() == Approx(0.2));
  CHECK(case_entry(two_workers(), weak(), {{run(180, shared), {}, {}}})["strategy"].is_null());
}

// SPDX-License-Identifier: Apache-2.0
#include "results/case_entry.hpp"

#include "config/report_values.hpp"
#include "figures_fixture.hpp"
#include "recompute.hpp"
#include "report/context.hpp"
#include "report/quantity.hpp"
#include "report/result_checks.hpp"
#include "results/disturbance.hpp"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::test;
using doctest::Approx;
using nlohmann::json;

namespace {

double sum_of(const json& parts) {
  double sum = 0;
  for (const json& part : parts) sum += part.get<double>();
  return sum;
}

} // namespace

TEST_CASE("weak scaling: efficiency and what it was lost to") {
  const run_figures two = run(2 * 10 / 0.110, shared), one = run(10 / 0.100, alone), both = run(198, alone);
  const json e = case_entry(two_workers(), weak(), {{two, one, both}});
  const double efficiency = e["efficiency"]["median"];
  CHECK(efficiency == Approx(100.0 / 110));
  CHECK(e["speedup"]["median"].get<double>() == Approx(200.0 / 110));
  CHECK(e["contention"]["median"].get<double>() == Approx(0.99));
  CHECK(e["efficiency_over_contention"]["median"].get<double>() == Approx(efficiency / 0.99));
  CHECK(e["baseline_samples_per_second"]["median"] == 100);
  const json& lost = e["lost"];
  CHECK(lost["compute"].get<double>() == Approx(3.0 / 110));
  CHECK(lost["exposed_communication"].get<double>() == Approx(4.0 / 110));
  CHECK(lost["wait"].get<double>() == Approx(2.0 / 110));
  CHECK(lost["other"].get<double>() == Approx(1.0 / 110));
  CHECK(lost["update"].get<double>() == Approx(0).epsilon(1e-12));
  CHECK(sum_of(lost) == Approx(1 - efficiency).epsilon(1e-12));
  CHECK(sum_of(e["time"]) == Approx(0.110));
}

TEST_CASE("noise is the second baseline over the first") {
  const run_figures two = run(180, shared), one = run(100, alone), again = run(103, alone);
  const json e = case_entry(two_workers(), weak(), {{two, one, {}, again, {}}, {two, again, {}, one, {}}});
  CHECK(e["noise"]["min"].get<double>() == Approx(100.0 / 103));
  CHECK(e["noise"]["max"].get<double>() == Approx(1.03));
  CHECK(e["efficiency"]["max"].get<double>() == Approx(0.9)); // of the first baseline
  CHECK(e["repeats"][0]["baseline_again"]["samples_per_second"] == 103);
  CHECK(case_entry(two_workers(), weak(), {{two, one, {}}})["noise"].is_null());
}

TEST_CASE("disturbed repeats are marked by a rule, stay in the figures, and are left out of others") {
  repeat_figures calm{run(180, shared), run(100, alone), run(198, alone), run(100, alone), {}};
  const machine_rates usual{1e11, 2e10};
  CHECK(disturbances(calm, usual, usual).empty());
  CHECK(disturbances(calm, std::nullopt, std::nullopt).empty());
  CHECK(disturbances(calm, machine_rates{0.91e11, 1.81e10}, usual).empty());
  CHECK(disturbances(calm, machine_rates{0.89e11, 2e10}, usual) ==
        std::vector<std::string>{"the rate of multiply-adds was 89 % of the median"});
  CHECK(disturbances(calm, machine_rates{1e11, 1e10}, usual) ==
        std::vector<std::string>{"the rate of copies was 50 % of the median"});
  repeat_figures busy = calm;
  busy.contention->steal = 0.03;
  busy.run.run_queue = 0.5; // its ranks may share CPUs: only the baseline's counts
  CHECK(disturbances(busy, usual, usual) ==
        std::vector<std::string>{"the hypervisor gave 3.0 % of the CPU time to others"});
  busy.contention->steal = 0.02;
  busy.baseline_again->run_queue = 0.06;
  busy.disturbed = disturbances(busy, usual, usual);
  CHECK(busy.disturbed == std::vector<std::string>{"a baseline waited for a CPU for 6.0 % of the time"});
  CHECK(usual_rates({{1, 5}, {3, 4}, {2, 9}})->fma == 2);
  CHECK(usual_rates({{1, 5}, {3, 4}, {2, 9}})->copy == 5);
  CHECK_FALSE(usual_rates({}));
  CHECK(disturbance_rule().find("more than 2 % of the CPU time") != std::string::npos);

  busy.run.samples_per_second = 90;
  const json e = case_entry(two_workers(), weak(), {calm, busy});
  CHECK(e["samples_per_second"]["median"] == 135);
  CHECK(e["undisturbed"] == json{{"n", 1}, {"samples_per_second", 180.0}, {"efficiency", 0.9}});
  CHECK(e["repeats"][0]["disturbed"] == json::array());
  CHECK(e["repeats"][0]["machine"].is_null());
  calm.machine = machine_rates{1e11, 2e10, 1e-7, std::nullopt};
  CHECK(case_entry(two_workers(), weak(), {calm})["repeats"][0]["machine"] ==
        json{{"fma", 1e11}, {"copy", 2e10}, {"line_round_trip_seconds", 1e-7}, {"clock_hz", nullptr}});
  CHECK(e["repeats"][1]["disturbed"].size() == 1);
  CHECK(e["warnings"].dump().find("disturbed: 1 of 2 repeats, which stay in the figures") != std::string::npos);
  CHECK(case_entry(two_workers(), weak(), {calm})["undisturbed"].is_null());
  CHECK(case_entry(two_workers(), weak(), {busy})["undisturbed"].is_null());
}

TEST_CASE("[report] may name every figure of an entry, and no other") {
  run_figures f = run(180, shared), one = run(10 / 0.100, alone), both = run(198, alone);
  f.server_sent_bytes = f.server_received_bytes = 1;
  f.server_update_seconds = 1;
  f.metric = "top1";
  f.metric_value = 0.5;
  f.metric_curve = {{3, 0.5}};
  f.metric_seconds = {0.3};
  f.metric_training_seconds = {0.4};
  case_config with = two_workers();
  with.measure.target = 0.5;
  case_facts facts = weak();
  facts.model.parameters = facts.model.table_parameters = 1;
  facts.model.flops_per_sample = 1;
  const json e = case_entry(with, facts, {{f, one, both, one, {}}, {f, one, both, one, {"steal"}}});
  std::vector<std::string> figures;
  const auto walk = [&](const auto& self, const json& at, const std::string& path) -> void {
    if (at.is_number() || (at.is_object() && at.contains("median"))) figures.push_back(path);
    if (!at.is_object()) return;
    for (const auto& [name, member] : at.items()) self(self, member, path.empty() ? name : path + "." + name);
  };
  walk(walk, e, "");
  for (const std::string& path : figures) {
    CAPTURE(path); // to be added to core/config/report_values.cpp, or not to be a number of an entry
    CHECK((is_report_value(path) || path.starts_with("case.") || path.starts_with("strategy.")));
  }
  for (const std::string& path : report_values()) {
    CAPTURE(path);
    if (path.ends_with(".blocked")) continue; // of runs on several hosts
    CHECK(std::ranges::find(figures, path) != figures.end());
    CHECK(quantity_of(e, path).unit != "none");
  }
  CHECK(is_report_value("strategy.staleness.mean"));
  for (const char* none : {"", "time", "strategy", "strategy.x", "strategy..mean", "strategy.x.y.mean", "efficienc"})
    CHECK_FALSE(is_report_value(none));
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
  CHECK(e["efficiency_over_contention"].is_null());
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
  CHECK(e["samples_per_second"]["n"] == 2);
  CHECK(e["samples_per_second"]["low"] == 180);
  CHECK(e["samples_per_second"]["high"] == 200);
  CHECK(e["samples_per_second"]["coverage"] == 0.5);
  CHECK(e["throughput"]["unit"] == "images/s");
  CHECK(e["throughput"]["median"] == 190.0);
  REQUIRE(e["repeats"].size() == 2);
  for (const json& repeat : e["repeats"]) {
    CHECK(repeat["case"]["step_seconds"]["steps"] == json::array({{0, 1}})); // one worker, two steps
    CHECK(repeat["case"]["step_seconds"]["per_rank"].size() == 1);
    CHECK(repeat["case"]["step_seconds"]["per_rank"][0].size() == 2);
    CHECK(repeat["baseline"].is_null());
    CHECK(repeat["contention"].is_null());
  }
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
  CHECK(e["isa"] == "avx2");
  for (const char* name : {"model", "optimizer", "synchrony", "precision", "data", "kernels", "layout_id", "isa"})
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

TEST_CASE("a case with some of its repeats has their figures") {
  const json partial = case_entry(two_workers(), weak(), "partial", "1 of 3 repeats", {{run(180, shared), {}, {}}});
  CHECK(partial["status"] == "partial");
  CHECK(partial["error"] == "1 of 3 repeats");
  CHECK(partial["samples_per_second"]["median"] == 180);
}

namespace {

// A rank's record of `steps` steps after two of warm-up. All numbers differ from those of other seeds.
rank_record rank_of(std::int32_t rank, std::int32_t worker, std::int32_t server, std::size_t steps, int seed) {
  std::int64_t state = seed * 7919 + rank * 104729 + 1;
  const auto some = [&](std::int64_t below) { return (state = (state * 48271) % 2147483647) % below; };
  rank_record r;
  r.rank = rank;
  r.worker = worker;
  r.server = server;
  r.host = "here";
  r.region_begin = r.region_end = 1'000'000'000 + some(1'000'000);
  for (std::size_t s = 0; worker >= 0 && s < steps; ++s) {
    step_time t;
    t.paused = s == 3 ? 50'000'000 : 0;
    t.begin = r.region_end + t.paused;
    t.input = some(1'000'000);
    t.forward = 3'000'000 + some(1'000'000);
    t.backward = 6'000'000 + some(1'000'000);
    t.update = some(2'000'000);
    t.blocked = some(4'000'000);
    t.compute_end = t.begin + t.input + t.forward + t.backward;
    t.end = r.region_end = t.compute_end + t.blocked + t.update + some(500'000);
    r.steps.push_back(t);
    r.unit_counts.push_back(static_cast<std::uint64_t>(90 + some(20)));
  }
  if (worker >= 0) {
    r.samples = 10 * steps;
    for (std::size_t s = 0; s < steps + 2; ++s) {
      r.loss_sums.push_back(static_cast<double>(20 + some(5)));
      r.loss_counts.push_back(10);
    }
    r.weights_hash = "ab";
  } else {
    r.region_end += 400'000'000;
  }
  r.communication_ns = 1'000'000 + some(1'000'000);
  r.server_update_ns = server < 0 ? 0 : 2'000'000 + some(1'000'000);
  r.drain_ns = 3'000'000 + some(1'000'000);
  r.bytes_sent = static_cast<std::uint64_t>(1000 + some(1000));
  r.bytes_received = static_cast<std::uint64_t>(2000 + some(1000));
  r.memory_peak_bytes = rank == 1 ? 0 : static_cast<std::uint64_t>(1'000'000 + some(1'000'000));
  r.cpu_seconds = 0.001 * static_cast<double>(some(1000));
  r.steal = 0.0001 * static_cast<double>(some(500));
  r.strategy.counts["staleness"] = {{0, some(9) + 1}, {2, some(9)}, {5, 1}};
  r.strategy.sums["encode_seconds"] = 0.001 * static_cast<double>(some(100));
  if (rank == 0) {
    r.gpu = gpu_figures{"G", "1", 0.01 * static_cast<double>(some(100)), {}, {}, {}, {}, {}, {}, {}};
    r.gpu->temperature_celsius = static_cast<double>(40 + some(30));
    r.metric = "top1";
    r.metric_value = 0.01 * static_cast<double>(some(100));
    r.metric_curve = {{steps, 0.1}, {steps + 2, *r.metric_value}};
  }
  return r;
}

run_figures run_of(int workers, int servers, std::size_t steps, int seed, bool asynchronous) {
  std::vector<rank_record> ranks;
  for (int w = 0; w < workers; ++w) ranks.push_back(rank_of(w, w, -1, steps, seed));
  for (int s = 0; s < servers; ++s) ranks.push_back(rank_of(workers + s, -1, s, steps, seed));
  return figures_of(ranks, asynchronous);
}

} // namespace

TEST_CASE("every figure of an entry can be computed again from its repeats, by other code than ours") {
  for (const bool asynchronous : {false, true})
    for (const int repeats : {1, 2, 3, 6})
      for (const char* unit : {"images", "tokens"}) {
        CAPTURE(asynchronous);
        CAPTURE(repeats);
        CAPTURE(unit);
        case_facts facts = weak();
        facts.synchronous = !asynchronous;
        facts.model.unit = unit;
        std::vector<repeat_figures> runs;
        for (int r = 0; r < repeats; ++r)
          runs.push_back({run_of(2, 1, 20, 3 * r, asynchronous), run_of(1, 0, 20, 3 * r + 1, false),
                          run_of(2, 0, 20, 3 * r + 2, false)});
        case_config config = two_workers();
        config.measure.target = 0.5; // some repeats reach it
        const json e = parsed(text_of(case_entry(config, facts, runs)));
        CHECK(e["efficiency"]["median"].is_number());
        CHECK(e["contention"]["median"].is_number());
        CHECK(e["contention"]["smallest_detectable"].is_number() == (repeats > 1));
        check_recomputed(e);
      }
}

TEST_CASE("curves of more than a thousand steps are sampled, and say which steps they have") {
  const json e = case_entry(two_workers(), weak(), {{run_of(2, 0, 3000, 1, false), {}, {}}});
  const json& steps = e["repeats"][0]["case"]["step_seconds"];
  REQUIRE(steps["per_rank"].size() == 2);
  for (const json& member :
       {steps["steps"][0], steps["per_rank"][0], e["loss"]["steps"], e["loss"]["curve"], e["loss"]["seconds"]})
    CHECK(member.size() == 1000);
  CHECK(steps["steps"][0][0] == 0);
  CHECK(steps["steps"][0][999] == 2999);
  CHECK(e["repeats"][0]["case"]["counted_steps"] == json{3000, 3000});
  const run_figures all = run_of(2, 0, 3000, 1, false);
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::size_t step = e["loss"]["steps"][i];
    REQUIRE(e["loss"]["curve"][i] == all.losses[step]);
    if (step >= 2) REQUIRE(e["loss"]["seconds"][i] == *all.loss_seconds[step]);
    REQUIRE(steps["per_rank"][0][i] == all.step_seconds[0][steps["steps"][0][i].get<std::size_t>()]);
  }
}

TEST_CASE("throughput is in tokens where they were counted, else in the model's unit") {
  run_figures r = run(180, shared);
  r.units_per_second = 4500;
  CHECK(case_entry(two_workers(), weak(), {{r, {}, {}}})["throughput"]["median"] == 180.0);
  r.counts_tokens = true;
  const json tokens = case_entry(two_workers(), weak(), {{r, {}, {}}})["throughput"];
  CHECK(tokens["unit"] == "tokens/s");
  CHECK(tokens["median"] == 4500.0);
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

TEST_CASE("each warning about a result is given once") {
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

// Returns figures with these kernels, layout and algorithm; empty: none.
run_figures ran(const std::string& kernels, const std::string& layout, const std::string& algorithm) {
  run_figures f;
  f.kernels = kernels;
  f.layout = layout;
  if (!algorithm.empty()) f.strategy.counts["algorithm_" + algorithm][1] = 1;
  return f;
}

TEST_CASE("fingerprints differ where what is computed differs, and only there") {
  const case_config a = two_workers();
  case_config b = a;
  b.cluster.threads = 7;
  b.transport.id = "tcp";
  CHECK(fingerprint(a, weak(), ran("k", "l", "ring")) == fingerprint(b, weak(), ran("k", "l", "ring")));
  b.optimizer.lr = 0.5;
  json fa = fingerprint(a, weak(), ran("k", "l", "ring")), fb = fingerprint(b, weak(), ran("k", "l", "ring"));
  CHECK(fa["optimizer"] != fb["optimizer"]);
  fa.erase("optimizer");
  fb.erase("optimizer");
  CHECK(fa == fb);
  b.model.parameters["hidden"] = 3;
  CHECK(fingerprint(a, weak(), ran("k", "l", "ring"))["model"] !=
        fingerprint(b, weak(), ran("k", "l", "ring"))["model"]);
  case_config a_in_parts = a;
  case_facts normalised = weak(), halves = weak();
  normalised.model.batch_statistics = halves.model.batch_statistics = true;
  halves.model.batch_per_worker = 5;
  CHECK(fingerprint(a, normalised, ran("", "", "ring"))["data"] != fingerprint(a, halves, ran("", "", "ring"))["data"]);
  // Statistics over the global batch do not depend on how workers share it, unless each has several micro-batches.
  const auto data_of = [](const case_config& c, const case_facts& f) {
    return fingerprint(c, f, ran("", "", ""))["data"];
  };
  normalised.model.sums_over_workers = halves.model.sums_over_workers = true;
  case_config four = a, independent = a;
  four.cluster.workers = 4;
  CHECK(data_of(a, normalised) == data_of(four, halves));
  a_in_parts.train.accumulate = four.train.accumulate = 2;
  CHECK(data_of(a_in_parts, normalised) != data_of(four, halves));
  independent.strategy.id = "none";
  CHECK(data_of(independent, halves) != data_of(a, halves));
  CHECK(fingerprint(a, weak(), ran("", "", "ring"))["kernels"].is_null());
  CHECK(fingerprint(a, weak(), ran("", "", "ring"))["algorithms"] == "ring");
  CHECK(fingerprint(a, weak(), ran("", "", ""))["algorithms"].is_null());
  run_figures wide, narrow;
  wide.isa = "avx512_core";
  narrow.isa = "avx2";
  CHECK(fingerprint(a, weak(), wide)["isa"] == "avx512_core");
  CHECK(fingerprint(a, weak(), wide) != fingerprint(a, weak(), narrow));
  strategy_records recorded;
  CHECK(algorithms_of(recorded).empty());
  for (const char* name : {"algorithm_ring", "staleness", "algorithm_halving_doubling", "algorithm_ring"})
    recorded.count(name, 4096);
  CHECK(algorithms_of(recorded) == "halving_doubling, ring");
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

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

#include "base/failure.hpp"
#include "compare/gate.hpp"
#include "compare/history.hpp"
#include "compare/render_comparison.hpp"
#include "recorded.hpp"
#include "results/statistics.hpp"

using namespace regatta;
using nlohmann::json;
using values = std::vector<double>;

namespace {

// One case whose repeats have these samples/s; everything else follows from them.
json entry(const values& rates, const json& swept = json::object()) {
  json repeats = json::array();
  for (const double rate : rates)
    repeats.push_back({{"round", 10 * repeats.size() + 1},
                       {"case",
                        {{"samples_per_second", rate},
                         {"step_seconds", {{"per_rank", {{10 / rate, 10 / rate}}}}},
                         {"bytes", {{"sent_per_step", {{"worker", 100.0}}}}},
                         {"memory_peak_bytes", {1000, 1000}},
                         {"loss", {{"steps", {0, 1}}, {"curve", {2.0, 1.0}}, {"seconds", {nullptr, 10 / rate}}}}}},
                       {"baseline", {{"samples_per_second", 100.0}}}});
  return {{"case", swept},
          {"status", "ok"},
          {"workers", 2},
          {"fingerprint", {{"model", "m"}, {"data", "d"}, {"precision", "fp32"}, {"executor", "e"}}},
          {"loss", {{"steps", {0, 1}}, {"curve", {2.0, 1.0}}, {"seconds", {nullptr, 1.0}}, {"last", 1.0}}},
          {"repeats", repeats}};
}

json document(const json& entries, const std::string& date = "2026-01-01T00:00:00Z") {
  return {{"schema", "regatta.result/1"},
          {"context",
           {{"date", date},
            {"git", "abc"},
            {"hosts", json::array({{{"name", "h"}, {"cpu", "c"}, {"cores", 2}}})},
            {"experiment",
             {{"experiment", {{"name", "x"}, {"seed", 1}}},
              {"train", {{"batch", 32}, {"precision", "fp32"}}},
              {"strategy", {{"plugin", "allreduce"}, {"parameters", {{"wire", "fp32"}}}}}}}}},
          {"results", entries}};
}

comparison compared(const json& a, const json& b, const std::vector<std::string>& across = {}) {
  return compare({{"a", document(json::array({a}))}, {"b", document(json::array({b}))}}, across);
}

compared_figure figure(const compared_case& c, const std::string& path) {
  const auto found = std::find_if(c.figures.begin(), c.figures.end(), [&](const auto& f) { return f.path == path; });
  REQUIRE(found != c.figures.end());
  return *found;
}

values scaled(values v, double factor) {
  for (double& x : v) x *= factor;
  return v;
}

const values ten = {100, 101, 99, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.3};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

values drawn(std::mt19937_64& random, std::size_t n) {
  values chosen;
  std::sample(recorded::samples_per_second.begin(), recorded::samples_per_second.end(), std::back_inserter(chosen),
              static_cast<std::ptrdiff_t>(n), random);
  std::shuffle(chosen.begin(), chosen.end(), random);
  return chosen;
}

} // namespace

TEST_CASE("of 1,000 comparisons of real runs of the same program, at most 5 % are false alarms") {
  // The tests are exact, so the share of false alarms is at most 5 % for any n, and below it as far as the distribution
  // of ranks has steps there: 3.1 and 4.2 % in pairs, 4.1 and 4.5 % apart for these n.
  std::mt19937_64 random(1);
  for (const std::size_t n : {6, 12}) {
    CAPTURE(n);
    int unpaired = 0, paired = 0;
    for (int i = 0; i < 1000; ++i) {
      const values all = drawn(random, 2 * n);
      const values a(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)),
          b(all.begin() + static_cast<std::ptrdiff_t>(n), all.end());
      values differences;
      for (std::size_t k = 0; k < n; ++k) differences.push_back(std::log(b[k] / a[k]));
      unpaired += unpaired_p(a, b) <= 0.05;
      paired += paired_p(differences) <= 0.05;
    }
    CHECK(unpaired <= 50);
    CHECK(paired <= 50);
  }
}

TEST_CASE("a program that is 3 % slower is found in at least 80 % of comparisons at the promised n") {
  // The noise is that of real runs, one after the other as in the rounds of a campaign; the change is planted, so that
  // it is exactly 3 %.
  std::mt19937_64 random(2);
  values noise;
  for (std::size_t i = 0; i + 1 < recorded::samples_per_second.size(); ++i)
    noise.push_back(std::log(recorded::samples_per_second[i + 1] / recorded::samples_per_second[i]));
  const std::size_t n = repeats_to_detect(*deviation(noise), std::log(1.03));
  CAPTURE(n);
  REQUIRE(n >= 6);
  REQUIRE(n < 100);
  int found = 0;
  std::uniform_int_distribution<std::size_t> any(0, noise.size() - 1);
  for (int i = 0; i < 1000; ++i) {
    values differences;
    for (std::size_t k = 0; k < n; ++k) differences.push_back(noise[any(random)] - std::log(1.03));
    found += paired_p(differences) <= 0.05 && paired_shift(differences)->estimate < 0;
  }
  CHECK(found >= 800);
}

TEST_CASE("a model with 3 % more work is found in at least 80 % of comparisons at the promised n") {
  std::mt19937_64 random(3);
  values real;
  for (std::size_t i = 0; i < recorded::layers_33.size(); ++i)
    real.push_back(std::log(recorded::layers_34[i] / recorded::layers_33[i]));
  CHECK(paired_p(real) < 0.001);
  const double slower = -std::accumulate(real.begin(), real.end(), 0.0) / static_cast<double>(real.size());
  const std::size_t n = repeats_to_detect(*deviation(real), slower);
  CAPTURE(n);
  REQUIRE(n >= 6);
  REQUIRE(n < real.size());
  int found = 0;
  std::uniform_int_distribution<std::size_t> any(0, real.size() - 1);
  for (int i = 0; i < 1000; ++i) {
    values differences;
    for (std::size_t k = 0; k < n; ++k) differences.push_back(real[any(random)]);
    found += paired_p(differences) <= 0.05 && paired_shift(differences)->estimate < 0;
  }
  CHECK(found >= 800);
}

TEST_CASE("verdicts: faster, slower, no difference, undecided, equal") {
  const comparison faster = compared(entry(ten), entry(scaled(ten, 1.1)));
  REQUIRE(faster.cases.size() == 1);
  const compared_figure rate = figure(faster.cases[0], "samples_per_second");
  CHECK(rate.outcome == outcome_of_test::better);
  CHECK(rate.ratio.estimate == doctest::Approx(1.1).epsilon(0.01));
  CHECK(rate.ratio.low > 1.08);
  CHECK(rate.ratio.high < 1.12);
  CHECK(rate.verdict.starts_with("B is 9."));
  CHECK(rate.verdict.ends_with(" % faster"));
  CHECK(figure(faster.cases[0], "efficiency").outcome == outcome_of_test::better);
  CHECK(figure(faster.cases[0], "step_seconds").verdict.ends_with(" % shorter"));
  CHECK(figure(faster.cases[0], "bytes.sent_per_step").verdict == "equal in every repeat");
  CHECK(figure(faster.cases[0], "loss").outcome == outcome_of_test::equal);
  CHECK(faster.tests == 3);

  const compared_figure half = figure(compared(entry(scaled(ten, 2)), entry(ten)).cases[0], "samples_per_second");
  CHECK(half.outcome == outcome_of_test::worse);
  CHECK(half.verdict.ends_with(" times slower"));

  const compared_figure same = figure(compared(entry(ten), entry(scaled(ten, 1.0001))).cases[0], "samples_per_second");
  CHECK(same.outcome == outcome_of_test::alike);
  CHECK(same.verdict.starts_with("no difference above "));

  const values three = {100, 101, 99};
  const compared_figure few = figure(compared(entry(three), entry(scaled(three, 2))).cases[0], "samples_per_second");
  CHECK(few.outcome == outcome_of_test::undecided);
  CHECK(few.needed == fewest_unpaired(3)); // three tested figures
  CHECK(few.verdict == "cannot be decided with 3 repeats: " + std::to_string(few.needed) + " would do");
}

TEST_CASE("one repeat decides nothing but equality") {
  const compared_case c = compared(entry({100}), entry({50})).cases[0];
  CHECK(figure(c, "samples_per_second").outcome == outcome_of_test::undecided);
  CHECK(figure(c, "samples_per_second").verdict.starts_with("cannot be decided with 1 repeat: "));
  CHECK(figure(c, "bytes.sent_per_step").outcome == outcome_of_test::equal);
}

TEST_CASE("cases of one result are compared in pairs, which removes what a round has in common") {
  values drifting, faster;
  for (std::size_t i = 0; i < ten.size(); ++i) {
    const double machine = 1 + 0.3 * static_cast<double>(i % 3);
    drifting.push_back(ten[i] * machine);
    faster.push_back(ten[ten.size() - 1 - i] * machine * 1.05);
  }
  const json both = json::array({entry(drifting, {{"train.batch", 1}}), entry(faster, {{"train.batch", 2}})});
  const comparison within = compare({{"a", document(both)}}, {});
  REQUIRE(within.cases.size() == 1);
  CHECK(figure(within.cases[0], "samples_per_second").outcome == outcome_of_test::better);
  CHECK(within.cases[0].differences == std::vector<std::string>{"train.batch: 1 -> 2"});
  const comparison apart = compared(entry(drifting), entry(faster));
  CHECK(figure(apart.cases[0], "samples_per_second").outcome == outcome_of_test::alike);
  // Cases without a common baseline run in rounds of their own, one case after the other.
  json in_turn = both;
  for (json& repeat : in_turn[1]["repeats"]) repeat["round"] = repeat["round"].get<int>() + 1000;
  const comparison unpaired = compare({{"a", document(in_turn)}}, {});
  CHECK(figure(within.cases[0], "samples_per_second").paired);
  CHECK_FALSE(figure(unpaired.cases[0], "samples_per_second").paired);
  CHECK(figure(unpaired.cases[0], "samples_per_second").outcome == outcome_of_test::alike);
}

TEST_CASE("cases that do different work are not compared, by the name of the part, unless it is admitted") {
  json other = entry(ten);
  other["fingerprint"]["model"] = "n";
  const comparison refused = compared(entry(ten), other);
  CHECK(refused.cases[0].figures.empty());
  CHECK(refused.cases[0].refused == "they do different work: model differs; --across model compares them all the same");
  const comparison admitted = compared(entry(ten), other, {"model"});
  CHECK(admitted.cases[0].refused.empty());
  CHECK(admitted.cases[0].notes.front() == "model differs, as --across admits");
  CHECK_FALSE(admitted.cases[0].figures.empty());
  json executor = entry(ten);
  executor["fingerprint"]["executor"] = "f"; // shown, but no reason to refuse
  const compared_case shown = compared(entry(ten), executor).cases[0];
  CHECK(shown.refused.empty());
  CHECK(shown.differences == std::vector<std::string>{"fingerprint: executor differs"});
}

TEST_CASE("cases match by what either result sweeps; others are named") {
  const json a = json::array({entry(ten, {{"train.batch", 32}}), entry(ten, {{"train.batch", 64}})});
  const json b = json::array({entry(ten, {{"train.batch", 64}}), entry(ten, {{"train.batch", 128}})});
  const comparison c = compare({{"a", document(a)}, {"b", document(b)}}, {});
  REQUIRE(c.cases.size() == 1);
  CHECK(has(c.cases[0].a, "batch 64"));
  CHECK(c.unmatched.size() == 2);
  // A result that does not sweep the key has its value in the experiment.
  const comparison fixed = compare({{"a", document(a)}, {"b", document(json::array({entry(ten)}))}}, {});
  REQUIRE(fixed.cases.size() == 1);
  CHECK(has(fixed.cases[0].a, "batch 32"));
}

TEST_CASE("a compressing strategy is called faster only beside 16-bit gradients and at an equal loss") {
  json lossy = entry(scaled(ten, 2));
  lossy["lossy"] = true;
  const compared_case plain = compared(entry(ten), lossy).cases[0];
  CHECK(std::none_of(plain.figures.begin(), plain.figures.end(),
                     [](const auto& f) { return f.path == "samples_per_second" || f.path == "efficiency"; }));
  CHECK(has(plain.notes.back(), "a baseline that sends gradients in 16 bits"));
  CHECK(has(compared(lossy, entry(ten)).cases[0].notes.back(), "a baseline that sends gradients in 16 bits"));
  json a = document(json::array({entry(ten)})), b = document(json::array({lossy}));
  // With the precision alone, messages stay fp32.
  a["context"]["experiment"]["train"]["precision"] = b["context"]["experiment"]["train"]["precision"] = "bf16";
  CHECK(has(compare({{"a", a}, {"b", b}}, {}).cases[0].notes.back(), "a baseline that sends gradients in 16 bits"));
  a["context"]["experiment"]["strategy"]["parameters"]["wire"] = "bf16";
  const compared_case fair = compare({{"a", a}, {"b", b}}, {}).cases[0];
  CHECK(figure(fair, "samples_per_second").outcome == outcome_of_test::better);
  CHECK(figure(fair, "seconds_to_loss").outcome == outcome_of_test::better);
  lossy["loss"]["last"] = nullptr;
  b = document(json::array({lossy}));
  CHECK(has(compare({{"a", a}, {"b", b}}, {}).cases[0].notes.back(), "a loss that both reach"));
}

TEST_CASE("times to a target are compared if both have the same target and all repeats reached it") {
  const auto with = [](double target, const values& seconds) {
    json e = entry(values(seconds.size(), 100));
    std::size_t reached = 0;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      json& run = e["repeats"][i]["case"];
      reached += seconds[i] > 0;
      run["seconds_to_target"] = seconds[i] > 0 ? json(seconds[i]) : json(nullptr);
      run["steps_to_target"] = seconds[i] > 0 ? json(10 * seconds[i]) : json(nullptr);
    }
    e["target"] = {{"metric", "top1"}, {"value", target}, {"side", "at_least"}, {"reached", reached}};
    return e;
  };
  const json slow = with(0.9, {20, 21, 22, 23, 24, 25}), fast = with(0.9, {10, 11, 12, 13, 14, 15});
  const compared_case c = compared(slow, fast).cases[0];
  CHECK(figure(c, "seconds_to_target").outcome == outcome_of_test::better);
  CHECK(figure(c, "seconds_to_target").verdict.ends_with(" faster"));
  CHECK(figure(c, "steps_to_target").verdict.ends_with(" earlier"));
  const auto refused = [&](const json& b) {
    const compared_case one = compared(slow, b).cases[0];
    CHECK(std::none_of(one.figures.begin(), one.figures.end(),
                       [](const compared_figure& f) { return f.path.ends_with("_to_target"); }));
    REQUIRE(!one.notes.empty());
    return one.notes.back();
  };
  CHECK(refused(with(0.8, {10, 11, 12, 13, 14, 15})) == "the targets differ, so the times to them are not compared");
  CHECK(refused(with(0.9, {10, 0, 12, 13, 0, 15})) ==
        "6 of 6 repeats of A and 4 of 6 of B reached the target: the time to it is compared if all do");
}

TEST_CASE("a history has the figures that a result has on its own") {
  const auto figures = history_figures();
  CHECK(std::find(figures.begin(), figures.end(), "seconds_to_target") != figures.end());
  CHECK(std::find(figures.begin(), figures.end(), "seconds_to_loss") == figures.end());
  json e = entry({100, 101, 102});
  for (std::size_t i = 0; i < 3; ++i) e["repeats"][i]["case"]["loss"]["last"] = 1.5 + static_cast<double>(i);
  const std::string text = render_history({{"a", document(json::array({e}))}}, "loss", format::console, 0);
  CHECK(text.find(" 2.5 ") != std::string::npos);
}

TEST_CASE("gates fail beyond the bound, and say what is undecided") {
  const gate g = parse_gate("samples_per_second -3%");
  CHECK(g.change == doctest::Approx(-0.03));
  const auto of = [&](const gate& which, const values& a, const values& b) {
    return check_gate(which, compared(entry(a), entry(b))).at(0);
  };
  CHECK(of(g, ten, scaled(ten, 0.9)).failed);
  CHECK(has(of(g, ten, scaled(ten, 0.9)).text, "FAILED"));
  CHECK(has(of(g, ten, ten).text, "passed"));
  CHECK(has(of(g, ten, scaled(ten, 0.97)).text, "undecided"));
  const values three = {100, 101, 99};
  CHECK(has(of(g, three, scaled(three, 0.5)).text, "at least 4 are needed"));
  CHECK_FALSE(of(g, three, scaled(three, 0.5)).failed);
  CHECK(of(parse_gate("step_seconds +5%"), ten, scaled(ten, 0.5)).failed);
  CHECK(check_gate(g, {}).at(0).failed); // it checks nothing
  const comparison pairs =
      compare({{"a", document(json::array({entry(three, {{"k", 1}}), entry(scaled(three, 0.5), {{"k", 2}})}))}}, {});
  CHECK(has(check_gate(g, pairs).at(0).text, "at least 6 are needed"));
  CHECK(has(of(g, {100}, {50}).text, "undecided")); // one repeat does not show how much the figure varies
  for (const char* wrong : {"samples_per_second", "samples_per_second 3%", "samples_per_second -3", "step_seconds -5%",
                            "sample_per_second -3%", "samples_per_second -100%"})
    CHECK_THROWS_AS(parse_gate(wrong), failure);
  CHECK_THROWS_WITH(parse_gate("eficiency -3%"), doctest::Contains("did you mean \"efficiency\"?"));
}

TEST_CASE("a history is sorted by date, with a bar for each result") {
  const std::vector<compared_result> results = {
      {"new", document(json::array({entry(scaled(ten, 2))}), "2026-02-01T00:00:00Z")},
      {"old", document(json::array({entry(ten)}), "2026-01-01T00:00:00Z")}};
  const std::string text = render_history(results, "samples_per_second", format::console, 0);
  CHECK(text.find("2026-01-01") < text.find("2026-02-01"));
  CHECK(has(text, "██████████  "));
  CHECK(has(text, "████████████████████"));
  const json points = json::parse(render_history(results, "efficiency", format::json, 0)).at("points");
  REQUIRE(points.size() == 2);
  CHECK(points[0].at("median").get<double>() == doctest::Approx(0.5).epsilon(0.01));
  CHECK(points[1].at("repeats") == 10);
}

TEST_CASE("a history shows simulated results as a series of their own") {
  json simulated = entry(scaled(ten, 3));
  simulated["simulated"] = true;
  const std::vector<compared_result> results = {{"a", document(json::array({entry(ten)}))},
                                                {"b", document(json::array({simulated}))}};
  CHECK(has(render_history(results, "samples_per_second", format::console, 0), "(simulated)"));
  const json points = json::parse(render_history(results, "samples_per_second", format::json, 0)).at("points");
  REQUIRE(points.size() == 2);
  CHECK(points[0].at("simulated") == false);
  CHECK(points[1].at("simulated") == true);
  CHECK(points[1].at("case") == points[0].at("case").get<std::string>() + " (simulated)");
}

TEST_CASE("a comparison has the same figures in every format") {
  const comparison c = compared(entry(ten), entry(scaled(ten, 1.1)));
  const auto gates = check_gate(parse_gate("samples_per_second -3%"), c);
  const json j = json::parse(render_comparison(c, gates, format::json, 0));
  CHECK(j.at("schema") == "regatta.comparison/1");
  const std::string verdict = j.at("cases").at(0).at("figures").at(0).at("verdict");
  for (const format f : {format::console, format::markdown, format::csv})
    CHECK(has(render_comparison(c, gates, f, 0), verdict));
  CHECK(j.at("gates").at(0).at("failed") == false);
  CHECK(has(render_comparison(c, gates, format::csv, 0), ",repeats,")); // a number, not the samples of a result
}

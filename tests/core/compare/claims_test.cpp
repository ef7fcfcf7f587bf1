// SPDX-License-Identifier: Apache-2.0
#include <random>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "compare/claims.hpp"
#include "recorded.hpp"
#include "report/claims_table.hpp"
#include "results/inference.hpp"

using namespace regatta;
using nlohmann::json;
using values = std::vector<double>;

namespace {

// A case whose repeats have these samples/s.
json entry(const std::string& strategy, const values& rates) {
  json repeats = json::array();
  for (const double rate : rates)
    repeats.push_back({{"round", 10 * repeats.size() + 1},
                       {"case",
                        {{"samples_per_second", rate},
                         {"step_seconds", {{"per_rank", {{10 / rate, 10 / rate}}}}},
                         {"bytes", {{"sent_per_step", {{"worker", strategy == "dgc" ? 50.0 : 100.0}}}}},
                         {"memory_peak_bytes", {1000, 1000}},
                         {"loss", {{"steps", {0, 1}}, {"curve", {2.0, 1.0}}, {"seconds", {nullptr, 10 / rate}}}}}},
                       {"baseline", {{"samples_per_second", 100.0}}}});
  return {
      {"case", {{"strategy.plugin", strategy}}},
      {"status", "ok"},
      {"workers", 2},
      {"global_batch", 64},
      {"replicas_identical", true},
      {"fingerprint", {{"model", "m"}, {"data", "d"}, {"precision", "fp32"}, {"synchrony", "synchronous"}}},
      {"loss", {{"steps", {0, 1}}, {"curve", {2.0, 1.0}}, {"seconds", {nullptr, 1.0}}, {"first", 2.0}, {"last", 1.0}}},
      {"repeats", repeats}};
}

json document(const values& left, const values& right) {
  return {{"schema", "regatta.result/1"},
          {"context", {{"experiment", json::object()}}},
          {"results", {entry("dgc", left), entry("allreduce", right)}}};
}

json claim(double at_least, const std::string& metric = "samples_per_second") {
  return {{"metric", metric},
          {"left", {{"strategy.plugin", "dgc"}}},
          {"right", {{"strategy.plugin", "allreduce"}}},
          {"at_least", at_least},
          {"at_most", nullptr},
          {"across", json::array()},
          {"text", nullptr}};
}

json decided(const json& document, const json& one) {
  return decided_claims(document, json::array({one})).at(0);
}

std::string verdict(const json& document, const json& one) {
  return decided(document, one).at("verdict");
}

values scaled(values v, double factor) {
  for (double& x : v) x *= factor;
  return v;
}

// Neighbouring repeats of real runs, in pairs: both ran the same program.
void draw(std::mt19937_64& random, std::size_t n, values& a, values& b) {
  std::uniform_int_distribution<std::size_t> any(0, recorded::samples_per_second.size() - 2);
  a.clear();
  b.clear();
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = any(random);
    const bool swapped = any(random) % 2 == 0;
    a.push_back(recorded::samples_per_second[at + swapped]);
    b.push_back(recorded::samples_per_second[at + !swapped]);
  }
}

const values ten = {100, 101, 99, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.3};
// As noisy, but not in the same rounds.
const values other = {99.9, 100.2, 100.1, 99.6, 100.4, 99.7, 100, 100.3, 99.8, 100.5};

} // namespace

TEST_CASE("a regression of 5 % fails the claim that nothing got slower; the same program does not") {
  // The noise is that of real runs, in pairs of neighbours.
  std::mt19937_64 random(3);
  int failed = 0, held = 0, false_alarms = 0;
  values a, b;
  for (int i = 0; i < 100; ++i) {
    draw(random, 40, a, b);
    failed += verdict(document(scaled(a, 0.95), b), claim(0.98)) == "fails";
    const std::string same = verdict(document(a, b), claim(0.98));
    held += same == "holds";
    false_alarms += same == "fails";
  }
  CHECK(failed >= 80);
  CHECK(held >= 50);
  CHECK(false_alarms <= 1);
}

TEST_CASE("a claim at the true value is decided wrongly in at most 5 % of cases, over all claims of a result") {
  std::mt19937_64 random(4);
  int wrong = 0;
  values a, b;
  for (int i = 0; i < 200; ++i) {
    draw(random, 12, a, b);
    // Ten claims of one result, each exactly at the truth: that none is decided has a probability of 95 %.
    json claims = json::array();
    for (int k = 0; k < 10; ++k) claims.push_back(claim(1));
    for (const json& c : decided_claims(document(a, b), claims)) {
      if (c.at("verdict") == "undecided") continue;
      ++wrong;
      break;
    }
  }
  CHECK(wrong <= 10);
}

TEST_CASE("verdicts with the value, the interval and the repeats") {
  const json held = decided(document(scaled(ten, 1.2), other), claim(1.1));
  CHECK(held.at("verdict") == "holds");
  CHECK(held.at("value").at("estimate").get<double>() == doctest::Approx(1.2).epsilon(0.01));
  CHECK(held.at("value").at("low") < held.at("value").at("high"));
  CHECK(held.at("left_median").get<double>() == doctest::Approx(120).epsilon(0.01));
  CHECK(held.at("repeats") == 10);
  CHECK(held.at("repeats_needed").is_null());
  CHECK(held.at("p_adjusted").at("at_least") <= 0.05);
  CHECK(verdict(document(ten, scaled(other, 1.2)), claim(1.1)) == "fails");
  CHECK(verdict(document(scaled(ten, 0.5), other), claim(0.6, "step_seconds")) == "holds"); // twice as long

  json both = claim(0.97);
  both["at_most"] = 1.03;
  CHECK(verdict(document(ten, other), both) == "holds");
  CHECK(verdict(document(scaled(ten, 1.1), other), both) == "fails");
  CHECK(verdict(document(scaled(ten, 1.03), other), both) == "undecided");

  json alone = claim(0.45, "efficiency"); // 100 samples/s of two workers over a baseline of 100
  alone["right"] = nullptr;
  CHECK(verdict(document(ten, other), alone) == "holds");
  alone["at_least"] = 0.55;
  CHECK(verdict(document(ten, other), alone) == "fails");
}

TEST_CASE("few repeats leave a claim undecided, with the number that would do") {
  const values three = {100, 101, 99};
  const json few = decided(document(scaled(three, 2), three), claim(1.5));
  CHECK(few.at("verdict") == "undecided");
  CHECK(few.at("repeats_needed") == fewest_pairs(1));
  CHECK(claim_verdict(few) == "undecided: about 6 repeats would do");
  // Two claims need more than one.
  const json two = decided_claims(document(scaled(three, 2), three), json::array({claim(1.5), claim(1.6)}));
  CHECK(two.at(0).at("repeats_needed") == fewest_pairs(2));
  // A small distance needs many; none at all cannot be decided.
  const json near = decided(document(scaled(ten, 1.001), other), claim(1));
  CHECK(near.at("verdict") == "undecided");
  CHECK(near.at("repeats_needed") > 20);
  const json at_bound = decided(document(scaled(ten, 0.9), ten), claim(0.9));
  CHECK(at_bound.at("repeats_needed").is_null());
  CHECK(claim_verdict(at_bound) == "undecided: the value is too near the bound for any number of repeats");
  CHECK(verdict(document({200}, {100}), claim(1)) == "undecided"); // one repeat does not show how much it varies
}

TEST_CASE("a figure that does not vary is compared with the bound exactly") {
  const json d = document(ten, other);
  CHECK(verdict(d, claim(0.5, "bytes.sent_per_step")) == "holds");
  CHECK(verdict(d, claim(0.51, "bytes.sent_per_step")) == "fails");
  json most = claim(0.5, "bytes.sent_per_step");
  std::swap(most["at_least"], most["at_most"]);
  CHECK(verdict(d, most) == "holds");
  CHECK(decided(d, most).at("p_adjusted").at("at_most").is_null());
}

TEST_CASE("wrong, missing and incomparable results support no claim, and the reason says so") {
  const auto reason = [](const json& d, const json& one = claim(0.5)) {
    const json c = decided(d, one);
    CHECK(c.at("verdict") == "undecided");
    CHECK(claim_verdict(c) == "undecided: " + c.at("reason").get<std::string>());
    return c.at("reason").get<std::string>();
  };
  json d = document(ten, other);
  d["results"][0]["replicas_identical"] = false;
  CHECK(reason(d) == "wrong results: strategy dgc: the workers ended with different weights");
  d = document(ten, other);
  d["results"][1]["status"] = "failed";
  CHECK(reason(d) == "right has no results");
  d["results"].erase(1);
  CHECK(reason(d) == "right has no results");
  d = document(ten, other);
  CHECK(reason(d, claim(0.5, "seconds_to_target")) == "a repeat has no seconds_to_target");
  d["results"][0]["fingerprint"]["synchrony"] = "asynchronous";
  CHECK(reason(d) == R"(left and right do different work: synchrony differs; across = ["synchrony"] admits it)");
  json admitted = claim(0.5);
  admitted["across"] = {"synchrony"};
  CHECK(verdict(d, admitted) == "holds");
  d = document(ten, other);
  d["results"][0]["lossy"] = true;
  CHECK(reason(d).starts_with("one side compresses gradients, so samples/s are no speed-up without a baseline that"));
  CHECK(verdict(d, claim(0.5, "seconds_to_loss")) == "holds");
}

TEST_CASE("claims in words") {
  json d = document(scaled(ten, 1.2), other);
  d["claims"] = decided_claims(d, json::array({claim(1.1)}));
  const text_table table = table_of_claims(d);
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].cells[0] == "samples_per_second of strategy dgc / strategy allreduce");
  CHECK(table.rows[0].cells[1] == "at least 1.1");
  CHECK(std::stod(table.rows[0].cells[2]) == doctest::Approx(1.2).epsilon(0.01));
  CHECK(table.rows[0].cells[4] == "10");
  CHECK(table.rows[0].cells[5] == "holds");
  json one = d["claims"][0];
  one["text"] = "dgc pays\nhere";
  one["at_most"] = 2;
  CHECK(claim_name(one) == "dgc pays here");
  CHECK(claim_bounds(one) == "1.1 to 2");
}

TEST_CASE("the verdict on a simulated result is marked") {
  json simulated = document({200, 202, 201, 203, 199, 200}, {100, 101, 100, 102, 99, 100});
  const json measured = decided(simulated, claim(1.5));
  CHECK(!measured.contains("simulated"));
  CHECK(claim_verdict(measured) == "holds");
  simulated["simulated"] = true;
  const json marked = decided(simulated, claim(1.5));
  CHECK(marked.at("simulated") == true);
  CHECK(marked.at("verdict") == "holds");
  CHECK(claim_verdict(marked) == "holds (simulated)");
}

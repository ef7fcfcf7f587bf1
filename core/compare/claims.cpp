// SPDX-License-Identifier: Apache-2.0
#include "compare/claims.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "compare/compression.hpp"
#include "compare/ratio_samples.hpp"
#include "compare/samples.hpp"
#include "compare/settings.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"
#include "results/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

constexpr double level_of_claims = 1 - usual_confidence;
constexpr double rounding_of_ratios = 1e-12;
constexpr std::size_t most_repeats = 10'000; // repeats_to_detect() counts no further

struct bound {
  const char* name; // "at_least" or "at_most"
  double value;
  std::optional<double> p; // adjusted later; std::nullopt: nothing varies
  enum class state { undecided, kept, violated } is = state::undecided;
};

struct decided {
  json claim;
  std::optional<ratio_samples> samples; // none: `reason` says why
  std::vector<bound> bounds;
  std::string reason;
};

const json* entry_of(const json& document, const json& side) {
  for (const json& entry : document.at("results"))
    if (entry.at("case") == side) return &entry;
  return nullptr;
}

// Returns that the entry has no figures; empty: it has.
std::string unusable(const json* entry, const char* side) {
  return entry && has_figures(*entry) ? "" : fmt::format("{} has no results", side);
}

// Returns how the results of these entries are wrong; empty: they are not.
std::string wrong_in(const json& entries) {
  const std::vector<std::string> wrong = check_results(entries);
  return wrong.empty() ? "" : "wrong results: " + wrong.front();
}

// Returns why the two cases must not be compared by this figure; empty: they may.
std::string forbidden(const json& document, const json& claim, const json& left, const json& right) {
  std::vector<std::string> apart = parts_apart(left, right);
  std::erase_if(apart, [&](const std::string& part) {
    const json& across = claim.at("across");
    return std::find(across.begin(), across.end(), part) != across.end();
  });
  if (!apart.empty())
    return fmt::format("left and right do different work: {} differ{}; across = {} admits it", join(apart, " and "),
                       apart.size() == 1 ? "s" : "", json(apart).dump());
  if (!is_speed(claim.at("metric"))) return "";
  const auto rules = rules_of_compression(document, left, document, right);
  return rules ? rules->missing : "";
}

// Fills in the samples, or the reason why there are none.
void add_samples(decided& d, const json& document) {
  const std::string metric = d.claim.at("metric");
  const json* const left = entry_of(document, d.claim.at("left"));
  if (!(d.reason = unusable(left, "left")).empty()) return;
  if (!(d.reason = wrong_in(json::array({*left}))).empty()) return;
  const std::string missing = fmt::format("a repeat has no {}", metric);
  if (d.claim.at("right").is_null()) {
    const samples_of_two of = samples_of_both(*left, *left, metric);
    if (of.a.empty()) {
      d.reason = missing;
      return;
    }
    d.samples.emplace(of.a);
    d.claim["left_median"] = *median(of.a);
    return;
  }
  const json* const right = entry_of(document, d.claim.at("right"));
  if (!(d.reason = unusable(right, "right")).empty()) return;
  if (!(d.reason = wrong_in(json::array({*left, *right}))).empty()) return;
  if (!(d.reason = forbidden(document, d.claim, *left, *right)).empty()) return;
  samples_of_two of;
  if (metric != "seconds_to_loss") {
    of = samples_of_both(*left, *right, metric);
  } else if (const auto loss = loss_of_both(*left, *right)) {
    of = {seconds_to_loss(*left, *loss), seconds_to_loss(*right, *loss), ""};
  }
  if (of.a.empty() || of.b.empty()) {
    d.reason = missing;
    return;
  }
  d.samples.emplace(of.b, of.a, in_the_same_rounds(*left, *right));
  d.claim["left_median"] = *median(of.a);
  d.claim["right_median"] = *median(of.b);
}

bool is_kept(const bound& b, double value) {
  return b.name == std::string("at_least") ? value >= b.value * (1 - rounding_of_ratios)
                                           : value <= b.value * (1 + rounding_of_ratios);
}

// Returns the repeats with which the bound would probably be decided; std::nullopt: no practical number is enough,
// because the estimate is at the bound.
std::optional<std::size_t> repeats_for(const bound& b, const ratio_samples& samples, double estimate,
                                       std::size_t tests) {
  const std::size_t least = std::max(samples.fewest(tests), samples.repeats() + 1);
  const auto spread = samples.spread();
  if (!spread) return least;
  const double distance = std::abs(std::log(estimate / b.value));
  if (!(distance > rounding_of_ratios)) return std::nullopt;
  const std::size_t needed = std::max(least, repeats_to_detect(*spread, distance, tests));
  return needed < most_repeats ? std::optional(needed) : std::nullopt;
}

void decide(decided& d, std::size_t tests) {
  json& claim = d.claim;
  claim["verdict"] = "undecided";
  if (!d.samples) return;
  const interval value = d.samples->ratio();
  claim["value"] = {
      {"estimate", value.estimate}, {"low", value.low}, {"high", value.high}, {"coverage", value.coverage}};
  claim["repeats"] = d.samples->repeats();
  std::optional<std::size_t> needed = 0;
  for (bound& b : d.bounds) {
    claim["p_adjusted"][b.name] = b.p ? json(*b.p) : json(nullptr);
    if (!b.p || *b.p <= level_of_claims) {
      b.is = is_kept(b, value.estimate) ? bound::state::kept : bound::state::violated;
      continue;
    }
    const auto more = repeats_for(b, *d.samples, value.estimate, tests);
    needed = needed && more ? std::optional(std::max(*needed, *more)) : std::nullopt;
  }
  const auto any = [&](bound::state s) { return std::ranges::count(d.bounds, s, &bound::is) > 0; };
  if (any(bound::state::violated))
    claim["verdict"] = "fails";
  else if (!any(bound::state::undecided))
    claim["verdict"] = "holds";
  else if (needed)
    claim["repeats_needed"] = *needed;
}

} // namespace

json decided_claims(const json& document, const json& claims) {
  std::vector<decided> all;
  for (const json& claim : claims) {
    decided& d = all.emplace_back();
    d.claim = claim;
    for (const char* member : {"value", "left_median", "right_median", "repeats_needed"}) d.claim[member] = nullptr;
    d.claim["repeats"] = 0;
    if (document.value("simulated", false)) d.claim["simulated"] = true;
    d.claim["p_adjusted"] = json::object();
    for (const char* name : {"at_least", "at_most"})
      if (claim.at(name).is_number()) d.bounds.push_back({name, claim[name].get<double>(), {}});
    add_samples(d, document);
    d.claim["reason"] = text_or_null(d.reason);
  }
  std::vector<double> p;
  for (decided& d : all)
    for (bound& b : d.bounds)
      if (d.samples && !d.samples->exact()) p.push_back(*(b.p = d.samples->p(b.value)));
  const std::vector<double> adjusted = holm(p);
  std::size_t next = 0;
  for (decided& d : all)
    for (bound& b : d.bounds)
      if (b.p) b.p = adjusted[next++];
  json result = json::array();
  for (decided& d : all) {
    decide(d, std::max<std::size_t>(p.size(), 1));
    result.push_back(std::move(d.claim));
  }
  return result;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Every derived figure of an entry of result.json, computed again from the raw samples under its "repeats", as
// docs/measurement.md says. On purpose this shares no code with core/measure and core/results.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "json.hpp"

namespace regatta::test {

namespace again {

using numbers = std::vector<double>;

inline json quantile(numbers x, double q) {
  if (x.empty()) return nullptr;
  std::sort(x.begin(), x.end());
  const double at = q * static_cast<double>(x.size() - 1);
  const auto low = static_cast<std::size_t>(std::floor(at));
  const std::size_t high = std::min(low + 1, x.size() - 1);
  return x[low] + (at - static_cast<double>(low)) * (x[high] - x[low]);
}
inline json median(const numbers& x) {
  return quantile(x, 0.5);
}
inline json lowest(const numbers& x) {
  return x.empty() ? json() : json(*std::min_element(x.begin(), x.end()));
}
inline json highest(const numbers& x) {
  return x.empty() ? json() : json(*std::max_element(x.begin(), x.end()));
}
inline json cv(const numbers& x) {
  if (x.size() < 2) return nullptr;
  double sum = 0, squares = 0;
  for (const double v : x) sum += v;
  const double mean = sum / static_cast<double>(x.size());
  for (const double v : x) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(x.size() - 1)) / mean;
}

// The coverage of the interval from the k-th smallest to the k-th largest of n samples for the median: the probability
// that between k and n - k samples are below it.
inline double coverage(std::size_t n, std::size_t k) {
  double ways = 1, share = 0;
  for (std::size_t below = 0; below <= n - k; ++below) {
    if (below >= k) share += ways * std::pow(0.5, static_cast<double>(n));
    ways *= static_cast<double>(n - below) / static_cast<double>(below + 1);
  }
  return share;
}
inline json figure(numbers x) {
  if (x.empty()) return nullptr;
  std::sort(x.begin(), x.end());
  std::size_t k = 1;
  while (2 * (k + 1) <= x.size() && coverage(x.size(), k + 1) >= 0.95) ++k;
  return {{"n", x.size()},
          {"median", median(x)},
          {"min", x.front()},
          {"max", x.back()},
          {"low", x[k - 1]},
          {"high", x[x.size() - k]},
          {"coverage", x.size() == 1 ? 0 : coverage(x.size(), k)}};
}
// With the smallest detectable difference; Student's t at 0.975 plus that at 0.8, by degrees of freedom (any table).
inline json ratio(const numbers& x) {
  constexpr double t[] = {
      0, 12.7062 + 1.37638, 4.30265 + 1.06066, 3.18245 + 0.97847, 2.77645 + 0.94096, 2.57058 + 0.91954};
  json j = figure(x);
  if (j.is_null()) return j;
  j["smallest_detectable"] = nullptr;
  if (x.size() < 2) return j;
  double sum = 0, squares = 0;
  for (const double v : x) sum += std::log(v);
  for (const double v : x) squares += std::pow(std::log(v) - sum / static_cast<double>(x.size()), 2);
  const double spread = std::sqrt(squares / static_cast<double>(x.size() - 1));
  REQUIRE(x.size() - 1 < std::size(t));
  j["smallest_detectable"] = std::exp(t[x.size() - 1] * spread / std::sqrt(static_cast<double>(x.size()))) - 1;
  return j;
}

// The repeats whose value is in the middle.
inline std::vector<std::size_t> middle(const numbers& x) {
  std::vector<std::size_t> order(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
  if (x.empty()) return {};
  return x.size() % 2 ? std::vector{order[x.size() / 2]} : std::vector{order[x.size() / 2 - 1], order[x.size() / 2]};
}

inline double rate(const json& run) {
  return run.at("samples").get<double>() / run.at("region_seconds").get<double>();
}
inline double step(const json& run) {
  double sum = 0;
  for (const auto& [name, seconds] : run.at("time").items()) sum += seconds.get<double>();
  return sum;
}

// One number of each repeat's own run; nulls are left out.
template <class Get> numbers over(const json& repeats, Get get) {
  numbers x;
  for (const json& r : repeats)
    if (const json value = get(r.at("case")); !value.is_null()) x.push_back(value);
  return x;
}

inline json by_rank(const json& repeats, const char* member, bool most) {
  json out = json::array();
  for (std::size_t rank = 0; rank < repeats.at(0).at("case").at(member).size(); ++rank) {
    const numbers x = over(repeats, [&](const json& run) { return run.at(member).at(rank); });
    out.push_back(most ? highest(x) : median(x));
  }
  return out;
}

inline json gpus(const json& repeats) {
  if (repeats.at(0).at("case").at("gpu").is_null()) return nullptr;
  json out = json::array();
  for (std::size_t rank = 0; rank < repeats.at(0).at("case").at("gpu").size(); ++rank) {
    json of_rank = repeats.at(0).at("case").at("gpu").at(rank);
    if (of_rank.is_object())
      for (auto& [name, value] : of_rank.items()) {
        if (!value.is_number()) continue;
        const numbers x = over(repeats, [&, key = name](const json& run) { return run.at("gpu").at(rank).at(key); });
        value = name == "memory_peak_bytes" || name == "temperature_celsius" ? highest(x) : median(x);
      }
    out.push_back(of_rank);
  }
  return out;
}

inline json strategy(const json& repeats) {
  json out = json::object();
  std::map<std::string, std::map<int, double>> counts;
  std::map<std::string, numbers> amounts;
  for (const json& r : repeats) {
    if (r.at("case").at("strategy").is_null()) continue;
    for (const auto& [name, report] : r.at("case").at("strategy").items()) {
      if (report.contains("counts"))
        for (const auto& [value, times] : report.at("counts").items())
          counts[name][std::stoi(value)] += times.get<double>();
      if (report.contains("per_step")) amounts[name].push_back(report.at("per_step"));
    }
  }
  for (const auto& [name, seen] : counts) {
    double sum = 0, all = 0;
    for (const auto& [value, times] : seen) {
      out[name]["counts"][std::to_string(value)] = times;
      sum += value * times;
      all += times;
    }
    out[name]["mean"] = sum / all;
    out[name]["max"] = seen.rbegin()->first;
  }
  for (const auto& [name, x] : amounts) out[name]["per_step"] = median(x);
  return out.empty() ? json() : out;
}

// Efficiency, speed-up, contention, and what the efficiency was lost to.
inline void add_scaling(json& out, const json& entry) {
  for (const char* name : {"baseline_samples_per_second", "noise", "speedup", "efficiency", "contention",
                           "efficiency_over_contention", "lost"})
    out[name] = nullptr;
  const double workers = entry.at("workers");
  numbers alone, noise, speedups, efficiencies, contentions, over_contentions;
  std::vector<json> lost;
  for (const json& r : entry.at("repeats")) {
    const json &run = r.at("case"), &base = r.at("baseline"), &control = r.at("contention");
    if (base.is_null()) continue;
    alone.push_back(rate(base));
    if (!r.at("baseline_again").is_null()) noise.push_back(rate(r.at("baseline_again")) / rate(base));
    speedups.push_back(rate(run) / rate(base));
    efficiencies.push_back(rate(run) / rate(base) / workers);
    if (!control.is_null()) {
      contentions.push_back(rate(control) / (workers * rate(base)));
      over_contentions.push_back(rate(run) / rate(control));
    }
    const double scale =
        run.at("samples_per_worker_step").get<double>() / base.at("samples_per_worker_step").get<double>();
    const auto share = [&](const char* part) {
      return (run.at("time").at(part).get<double>() - scale * base.at("time").at(part).get<double>()) / step(run);
    };
    json shares = {{"input", share("input")},
                   {"compute", share("forward") + share("backward")},
                   {"update", share("update")},
                   {"exposed_communication", share("exposed_communication")},
                   {"wait", share("wait")}};
    double sum = 0;
    for (const json& s : shares) sum += s.get<double>();
    shares["other"] = 1 - efficiencies.back() - sum;
    lost.push_back(shares);
  }
  if (alone.empty()) return;
  out["baseline_samples_per_second"] = figure(alone);
  out["noise"] = ratio(noise);
  out["speedup"] = ratio(speedups);
  out["efficiency"] = ratio(efficiencies);
  out["contention"] = ratio(contentions);
  out["efficiency_over_contention"] = ratio(over_contentions);
  const std::vector<std::size_t> chosen = middle(efficiencies);
  for (const auto& [part, share] : lost.at(0).items()) {
    double sum = 0;
    for (const std::size_t i : chosen) sum += lost[i].at(part).get<double>();
    out["lost"][part] = sum / static_cast<double>(chosen.size());
  }
}

// The medians over the repeats that nothing disturbed, if there are such and others.
inline json undisturbed(const json& entry) {
  numbers rates, efficiencies;
  for (const json& r : entry.at("repeats")) {
    if (!r.at("disturbed").empty()) continue;
    rates.push_back(rate(r.at("case")));
    if (!r.at("baseline").is_null())
      efficiencies.push_back(rates.back() / rate(r.at("baseline")) / entry.at("workers").get<double>());
  }
  if (rates.empty() || rates.size() == entry.at("repeats").size()) return nullptr;
  return {{"n", rates.size()}, {"samples_per_second", median(rates)}, {"efficiency", median(efficiencies)}};
}

// The first evaluation of a run that reaches the target: null if there is none.
inline json first_reaching(const json& run, const json& target) {
  if (target.is_null() || run.at("metric").is_null()) return nullptr;
  for (const json& point : run.at("metric").at("curve")) {
    const double value = point.at("value"), bound = target.at("value");
    if (target.at("side") == "at_most" ? value <= bound : value >= bound) return point;
  }
  return nullptr;
}

// A repeat that does not reach the target takes longer than all others; a figure among such repeats is null.
inline json to_target(const json& entry, const char* member) {
  numbers x;
  std::size_t reached = 0;
  for (const json& r : entry.at("repeats")) {
    const json point = first_reaching(r.at("case"), entry.at("target"));
    reached += !point.is_null();
    x.push_back(point.is_null() ? 1e200 : point.at(member).get<double>());
  }
  if (reached == 0) return nullptr;
  json j = figure(x);
  for (json& value : j)
    if (value.is_number_float() && value.get<double>() > 1e100) value = nullptr;
  return j;
}

// The clocks of the repeat in which they were known worst.
inline json clocks(const json& repeats) {
  json worst = nullptr;
  const auto uncertainty = [](const json& clocks) {
    if (clocks.is_null()) return -1.0;
    return clocks.at("uncertainty_seconds").is_null() ? 1e200 : clocks.at("uncertainty_seconds").get<double>();
  };
  for (const json& r : repeats)
    if (uncertainty(r.at("case").at("clocks")) > uncertainty(worst)) worst = r.at("case").at("clocks");
  return worst;
}

inline json stragglers(const json& repeats) {
  json out = repeats.at(0).at("case").at("stragglers");
  if (out.is_null()) return out;
  numbers compute;
  std::size_t slowest = 0;
  for (std::size_t w = 0; w < out.at("ranks").size(); ++w) {
    json& rank = out["ranks"][w];
    const auto of_run = [&](const char* member) {
      return over(repeats, [&](const json& run) { return run.at("stragglers").at("ranks").at(w).at(member); });
    };
    rank["compute_seconds"] = median(of_run("compute_seconds"));
    compute.push_back(rank["compute_seconds"]);
    if (compute[w] > compute[slowest]) slowest = w;
    double sum = 0;
    for (const double share : of_run("last")) sum += share;
    rank["last"] = rank["last"].is_null() ? json() : json(sum / static_cast<double>(repeats.size()));
  }
  numbers others = compute;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(slowest));
  const json& last = out["ranks"][slowest]["last"];
  const bool holds = compute[slowest] > 1.1 * median(others).get<double>() && (last.is_null() || last >= 2.0 / 3);
  out["held_back_by"] = holds ? json(slowest) : json();
  return out;
}

inline json figures(const json& entry) {
  const json& repeats = entry.at("repeats");
  json out = json::object();
  const numbers rates = over(repeats, rate);
  out["samples_per_second"] = figure(rates);
  out["samples_per_second"].update(
      json{{"unit", "samples/s"}, {"scope", "global"}, {"cv", cv(rates)}, {"repeats", json(rates)}});
  const std::string unit = entry.at("throughput").at("unit");
  const numbers counted = over(repeats, [&](const json& run) {
    const bool meant = (unit == "tokens/s" || unit == "words/s") && !run.at("units").is_null();
    return meant ? json(run.at("units").get<double>() / run.at("region_seconds").get<double>()) : json();
  });
  out["throughput"] = figure(counted.empty() ? rates : counted);
  out["throughput"].update(json{{"unit", unit}, {"scope", "global"}});
  out["batches_per_second"] = median(over(repeats, [](const json& run) {
    double steps = 0;
    for (const json& of_worker : run.at("counted_steps")) steps += of_worker.get<double>();
    return json(steps / static_cast<double>(run.at("counted_steps").size()) / run.at("region_seconds").get<double>());
  }));
  numbers steps;
  for (const json& r : repeats)
    for (const json& of_worker : r.at("case").at("step_seconds").at("per_rank"))
      for (const json& seconds : of_worker) steps.push_back(seconds);
  out["step_seconds"] = {{"median", median(steps)},
                         {"p10", quantile(steps, 0.1)},
                         {"p90", quantile(steps, 0.9)},
                         {"p99", quantile(steps, 0.99)}};
  for (const auto& [part, ignored] : repeats.at(0).at("case").at("time").items()) {
    const std::vector<std::size_t> chosen = middle(rates);
    double sum = 0;
    for (const std::size_t i : chosen) sum += repeats.at(i).at("case").at("time").at(part).get<double>();
    out["time"][part] = sum / static_cast<double>(chosen.size());
  }
  for (const char* name : {"communication_total", "server_update", "drain_seconds"})
    out[name] = median(over(repeats, [&](const json& run) { return run.at(name); }));
  for (const char* way : {"sent_per_step", "received_per_step"})
    for (const char* role : {"worker", "server"})
      out["bytes"][way][role] =
          median(over(repeats, [&](const json& run) { return run.at("bytes").at(way).at(role); }));
  out["strategy"] = strategy(repeats);
  out["memory_peak_bytes"] = by_rank(repeats, "memory_peak_bytes", true);
  out["cpu_seconds"] = by_rank(repeats, "cpu_seconds", false);
  out["gpu"] = gpus(repeats);
  out["loss"] = repeats.at(0).at("case").at("loss");
  out["metric"] = repeats.at(0).at("case").at("metric");
  if (!out["metric"].is_null())
    out["metric"]["value"] = median(over(repeats, [](const json& run) { return run.at("metric").at("value"); }));
  out["target"] = entry.at("target");
  if (!out["target"].is_null()) {
    out["target"]["reached"] = 0;
    for (const json& r : repeats)
      if (!first_reaching(r.at("case"), entry.at("target")).is_null())
        out["target"]["reached"] = out["target"]["reached"].get<int>() + 1;
  }
  out["steps_to_target"] = to_target(entry, "step");
  out["seconds_to_target"] = to_target(entry, "training_seconds");
  out["evaluation_seconds"] = median(over(repeats, [](const json& run) { return run.at("evaluation_seconds"); }));
  out["skipped_records"] = repeats.at(0).at("case").at("skipped_records");
  out["replicas_identical"] = nullptr; // if the strategy does not keep replicas identical
  if (!entry.at("replicas_identical").is_null()) {
    bool all = true;
    for (const json& r : repeats) all = all && r.at("case").at("replicas_identical").get<bool>();
    out["replicas_identical"] = all;
  }
  out["weights_moved"] = nullptr;
  numbers given;
  for (const json& r : repeats) {
    given.push_back(r.at("case").at("given_bytes"));
    if (const json& moved = r.at("case").at("weights_moved"); !moved.is_null())
      out["weights_moved"] = moved == true && out["weights_moved"] != false;
  }
  out["given_bytes"] = lowest(given);
  out["weights_sha256"] = json::array();
  for (const json& r : repeats) out["weights_sha256"].push_back(r.at("case").at("weights_sha256"));
  out["hosts"] = repeats.at(0).at("case").at("hosts");
  out["clocks"] = clocks(repeats);
  out["stragglers"] = stragglers(repeats);
  add_scaling(out, entry);
  out["undisturbed"] = undisturbed(entry);
  return out;
}

inline void same(const json& got, const json& expected, const std::string& path) {
  CAPTURE(path);
  if (got.is_number() && expected.is_number()) {
    const double digits = path.ends_with(".smallest_detectable") ? 1e-4 : 1e-9; // Student's t is from a table
    CHECK(std::abs(got.get<double>() - expected.get<double>()) <= digits * std::abs(expected.get<double>()) + 1e-12);
  } else if (got.is_structured() && expected.is_structured()) {
    REQUIRE(got.size() == expected.size());
    for (const auto& [key, value] : got.items()) {
      if (got.is_object()) REQUIRE(expected.contains(key));
      same(value, got.is_object() ? expected.at(key) : expected.at(std::stoul(key)), path + "." + key);
    }
  } else {
    CHECK(got == expected);
  }
}

} // namespace again

// Requires that no worker has more than 1000 steps. Every member that is not given is compared, so a figure that comes
// to the entry and cannot be computed from its repeats fails here.
inline void check_recomputed(const json& entry) {
  const std::set<std::string> given = {"case",     "status",       "error",      "workers",          "servers",
                                       "threads",  "precision",    "parameters", "table_parameters", "batch_per_worker",
                                       "warnings", "global_batch", "lossy",      "fingerprint",      "isa",
                                       "kernels",  "repeats",      "sampling",   "flops_per_sample", "simulated"};
  const json figures = again::figures(entry);
  for (const auto& [name, value] : entry.items()) {
    if (given.count(name)) continue;
    REQUIRE_MESSAGE(figures.contains(name), name);
    again::same(value, figures.at(name), name);
  }
  for (const json& r : entry.at("repeats")) {
    CHECK(again::rate(r.at("case")) ==
          doctest::Approx(r.at("case").at("samples_per_second").get<double>()).epsilon(1e-12));
    for (const char* role : {"case", "baseline", "baseline_again", "contention"}) {
      const json& run = r.at(role);
      if (run.is_null()) continue;
      // The parts of the time sum to the mean over workers of their mean steps.
      double sum = 0, workers = 0;
      for (const json& of_worker : run.at("step_seconds").at("per_rank")) {
        if (of_worker.empty()) continue;
        double steps = 0;
        for (const json& seconds : of_worker) steps += seconds.get<double>();
        sum += steps / static_cast<double>(of_worker.size());
        ++workers;
      }
      CHECK(again::step(run) == doctest::Approx(sum / workers).epsilon(1e-6));
    }
  }
}

} // namespace regatta::test

// SPDX-License-Identifier: Apache-2.0
#include "compare/samples.hpp"

#include "results/statistics.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;
using values = std::vector<double>;

double number(const json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

double efficiency_of(const json& entry, const json& repeat) {
  const json baseline = repeat.value("baseline", json());
  if (!baseline.is_object()) return std::nan("");
  return number(repeat.at("case").at("samples_per_second")) /
         (number(entry.at("workers")) * number(baseline.at("samples_per_second")));
}

double step_of(const json& run) {
  values all;
  for (const json& of_worker : run.at("step_seconds").at("per_rank"))
    for (const json& seconds : of_worker) all.push_back(number(seconds));
  return all.empty() ? std::nan("") : *median(all);
}

double memory_of(const json& run) {
  double sum = 0;
  for (const json& bytes : run.at("memory_peak_bytes")) sum += number(bytes);
  return sum;
}

double value_of(const json& entry, const json& repeat, const std::string& path) {
  const json& run = repeat.at("case");
  if (path == "efficiency") return efficiency_of(entry, repeat);
  if (path == "step_seconds") return step_of(run);
  if (path == "memory_peak_bytes") return memory_of(run);
  if (path == "loss") {
    const json loss = run.value("loss", json());
    return loss.is_object() ? number(loss.value("last", json())) : std::nan("");
  }
  if (path == "bytes.sent_per_step") return number(run.at("bytes").at("sent_per_step").at("worker"));
  return number(run.value(path, json()));
}

// Returns the value of each repeat by `get`, which returns NaN if the repeat has none; empty if one has none.
template <class Get> values over_repeats(const json& entry, Get get) {
  values all;
  for (const json& repeat : entry.value("repeats", json::array())) {
    const double value = get(repeat);
    if (!std::isfinite(value) || value <= 0) return {};
    all.push_back(value);
  }
  return all;
}

// Returns the position of the step in the listed losses; std::nullopt: it is not listed.
std::optional<std::size_t> position_of(const json& loss, std::size_t step) {
  const json& steps = loss.at("steps");
  const auto found = std::find(steps.begin(), steps.end(), json(step));
  if (found == steps.end()) return std::nullopt;
  return static_cast<std::size_t>(found - steps.begin());
}

} // namespace

values samples_of(const json& entry, const std::string& path) {
  return over_repeats(entry, [&](const json& repeat) { return value_of(entry, repeat, path); });
}

std::optional<std::size_t> last_common_step(const json& a, const json& b) {
  const json of_a = a.value("loss", json()), of_b = b.value("loss", json());
  if (!of_a.is_object() || !of_b.is_object()) return std::nullopt;
  std::optional<std::size_t> last;
  for (const json& step : of_a.at("steps"))
    if (position_of(of_b, step.get<std::size_t>())) last = step.get<std::size_t>();
  return last;
}

values losses_at(const json& entry, std::size_t step) {
  return over_repeats(entry, [&](const json& repeat) {
    const json loss = repeat.at("case").value("loss", json());
    const auto at = loss.is_object() ? position_of(loss, step) : std::nullopt;
    return at ? number(loss.at("curve").at(*at)) : std::nan("");
  });
}

values seconds_to_loss(const json& entry, double target) {
  return over_repeats(entry, [&](const json& repeat) {
    const json loss = repeat.at("case").value("loss", json());
    if (!loss.is_object()) return std::nan("");
    for (std::size_t i = 0; i < loss.at("curve").size(); ++i)
      if (number(loss["curve"][i]) <= target) return number(loss.at("seconds").at(i));
    return std::nan("");
  });
}

bool in_the_same_rounds(const json& a, const json& b) {
  const auto round_of = [](const json& repeat) { return number(repeat.value("round", json())); }; // NaN: unknown
  return std::ranges::equal(a.at("repeats"), b.at("repeats"), {}, round_of, round_of);
}

samples_of_two samples_of_both(const json& a, const json& b, const std::string& path) {
  if (path != "loss") return {samples_of(a, path), samples_of(b, path), ""};
  const auto step = last_common_step(a, b);
  if (!step) return {};
  return {losses_at(a, *step), losses_at(b, *step), fmt::format("loss: of step {}, counted from 0", *step)};
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "report/result_checks.hpp"

#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/fields.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// An infinite or NaN loss is null in JSON.
bool finite(const json& loss) {
  if (loss.at("first").is_null() || loss.at("last").is_null()) return false;
  for (const json& value : loss.at("curve"))
    if (value.is_null()) return false;
  return true;
}

double tolerance_for(const std::string& precision) {
  return precision == "fp32" ? 1e-5 : 1e-2;
}

} // namespace

std::string short_name(const std::string& key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return key;
  const std::string rest = key.substr(dot + 1);
  return rest == "plugin" ? key.substr(0, dot) : rest;
}

std::string case_label(const json& entry) {
  std::string label;
  for (const auto& [key, value] : entry.at("case").items())
    label += fmt::format("{}{} {}", label.empty() ? "" : ", ", short_name(key),
                         value.is_string() ? value.get<std::string>() : value.dump());
  return label.empty() ? "the case" : label;
}

std::vector<std::string> check_results(const json& entries) {
  std::vector<std::string> wrong;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, const json*> first_of;
  for (const json& entry : entries) {
    if (!has_figures(entry)) continue;
    const std::string label = case_label(entry);
    if (entry.at("replicas_identical") == false)
      wrong.push_back(fmt::format("{}: the workers ended with different weights", label));
    if (entry.value("weights_moved", json()) == false)
      wrong.push_back(fmt::format("{}: the weights never moved, though the gradient is not zero", label));
    if (entry.at("fingerprint").at("synchrony") == "synchronous" && entry.at("workers") > 1 &&
        entry.value("given_bytes", json()) == 0)
      wrong.push_back(fmt::format("{}: a synchronous strategy of {} workers sent nothing in all timed steps", label,
                                  entry.at("workers").get<std::int64_t>()));
    const json& loss = entry.at("loss");
    if (loss.is_null()) continue;
    if (!finite(loss)) {
      wrong.push_back(fmt::format("{}: the loss is not finite", label));
      continue;
    }
    const json& print = entry.at("fingerprint");
    const std::string precision = print.at("precision");
    const auto [reference, is_new] =
        first_of.try_emplace(std::tuple{print.at("model").get<std::string>(), print.at("data").get<std::string>(),
                                        precision, entry.at("global_batch").dump()},
                             &entry);
    if (is_new) continue;
    const double here = loss.at("first"), there = reference->second->at("loss").at("first");
    if (std::abs(here - there) > tolerance_for(precision) * std::max(std::abs(here), std::abs(there)))
      wrong.push_back(fmt::format("{}: the loss of the first step is {:.8g}, but {:.8g} for {}, on the same samples",
                                  label, here, there, case_label(*reference->second)));
  }
  return wrong;
}

std::optional<std::string> missed_target(const json& entry) {
  const json target = entry.value("target", json());
  if (!target.is_object() || entry.at("status") != "ok") return std::nullopt;
  const double value = target.at("value");
  const json& metric = entry.at("metric");
  if (metric.is_null() || metric.at("value").is_null())
    return fmt::format("{}: measure.target is {:g}, but nothing was evaluated", case_label(entry), value);
  const std::size_t reached = target.at("reached"), repeats = entry.at("repeats").size();
  if (reached == repeats) return std::nullopt;
  return fmt::format("{}: {} of {} repeats reached measure.target, {} {} {:g}; the final {} is {:.4g}",
                     case_label(entry), reached, repeats, metric.at("name").get<std::string>(),
                     target.at("side") == "at_most" ? "at most" : "at least", value,
                     metric.at("name").get<std::string>(), metric.at("value").get<double>());
}

} // namespace regatta

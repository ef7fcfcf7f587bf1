// SPDX-License-Identifier: Apache-2.0
#include "simulate/measured_rates.hpp"

#include "base/failure.hpp"
#include "report/stored_document.hpp"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {

using nlohmann::json;

measured_rates read_measured_rates(const std::string& given) {
  const stored_document stored = read_stored(given, {"regatta.result/1"});
  const auto refuse = [&](const char* why) {
    return failure(exit_code::usage, fmt::format("{}: {}", stored.file.string(), why));
  };
  measured_rates out;
  std::map<double, std::vector<double>> by_batch;
  try {
    for (const json& entry : stored.document.at("results")) {
      if (entry.at("status") != "ok" || entry.value("simulated", false) || entry.at("workers") != 1) continue;
      const auto model = entry.at("fingerprint").at("model").get<std::string>();
      if (!out.fingerprint.empty() && model != out.fingerprint)
        throw refuse("expected cases of one model, got cases of different models or parameters of a model");
      out.fingerprint = model;
      by_batch[entry.at("batch_per_worker").get<double>()].push_back(
          entry.at("samples_per_second").at("median").get<double>());
    }
  } catch (const json::exception& e) {
    throw refuse(e.what());
  }
  if (by_batch.empty())
    throw refuse("expected a measured case of one worker, got none: run the experiment with "
                 "--set cluster.workers=1");
  for (const auto& [batch, all] : by_batch) {
    double sum = 0;
    for (const double rate : all) sum += rate;
    out.rates.emplace_back(batch, sum / static_cast<double>(all.size()));
  }
  return out;
}

} // namespace regatta

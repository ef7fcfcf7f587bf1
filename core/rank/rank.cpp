// SPDX-License-Identifier: Apache-2.0
#include "rank/rank.hpp"

#include "base/failure.hpp"
#include "rank/server.hpp"
#include "rank/session.hpp"
#include "rank/worker.hpp"

#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <regatta/plugin.hpp>
#include <unistd.h>

namespace regatta {
namespace {

std::string hash_of(std::span<const float> values) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_Digest(values.data(), values.size_bytes(), digest, &length, EVP_sha256(), nullptr) != 1) return "";
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

nlohmann::json train(control_client& control, rank_job job, std::uint32_t rank) {
  session s(control, std::move(job), rank);
  control.on_death([&s](std::uint32_t) { s.wake(); });
  s.open();
  control.operation("meeting the other ranks");
  control.barrier("ready");
  const bool worker = s.cluster.worker >= 0;
  rank_record record = worker ? run_worker(s) : run_server(s);
  record.rank = static_cast<std::int32_t>(rank);
  record.worker = s.cluster.worker;
  record.server = s.cluster.server;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  record.host = host;
  if (worker) record.role = fmt::format("worker {}", s.cluster.worker);
  if (s.cluster.server >= 0) record.role += fmt::format("{}server {}", worker ? " + " : "", s.cluster.server);
  if (worker) record.weights_hash = hash_of(s.exchange().weights());
  record.layout = s.model().info().layout ? s.model().info().layout : "";
  record.kernels = s.model().kernels();
  record.warnings.insert(record.warnings.end(), s.strategy_warnings().begin(), s.strategy_warnings().end());
  record.memory_peak_bytes = memory_peak_bytes();
  control.operation("meeting the other ranks at the end");
  control.barrier("done"); // nobody leaves while others still read its memory
  s.close();
  control.on_death({});
  return to_json(record);
}

// Times the candidates for every kernel and brings back what was picked.
nlohmann::json tune(control_client& control, const rank_job& job) {
  control.operation("timing kernels");
  const registry plugins = registry::of_files({job.files.begin(), job.files.end()});
  model_instance model(plugins, job.config.model, job.config.train.device,
                       model_setup_of(job.config, job.batch / static_cast<std::uint64_t>(job.config.train.accumulate),
                                      RG_PURPOSE_TRAIN, nullptr),
                       [&](int level, const std::string& text) { control.log(level, text); });
  return {{"kernels", model.kernels()}};
}

} // namespace

int report_to_coordinator(control_client& control, const std::function<nlohmann::json()>& work) {
  try {
    control.result(work());
    return 0;
  } catch (const peer_failure& e) {
    control.failed(e.what(), static_cast<int>(e.code()), blame::peer);
    return static_cast<int>(e.code());
  } catch (const failure& e) {
    control.failed(e.what(), static_cast<int>(e.code()));
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    control.failed(e.what(), static_cast<int>(exit_code::run));
    return static_cast<int>(exit_code::run);
  }
}

int run_rank(control_client& control, std::uint32_t rank) {
  return report_to_coordinator(control, [&] {
    rank_job job = job_from_json(control.job());
    return job.tune ? tune(control, job) : train(control, std::move(job), rank);
  });
}

} // namespace regatta

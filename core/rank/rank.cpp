// SPDX-License-Identifier: Apache-2.0
#include "rank/rank.hpp"

#include "base/cpu_mask.hpp"
#include "base/failure.hpp"
#include "base/instruction_set.hpp"
#include "rank/server.hpp"
#include "rank/session.hpp"
#include "rank/worker.hpp"
#include "registry/sha256.hpp"

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace regatta {
namespace {

// Returns the SHA-256 of the dense weights, followed by the changed rows of each sparse table in ascending order: row
// number and weights. "" if the worker holds no weights, because the model has only sparse tables and servers hold
// them.
std::string hash_of_weights(strategy_host& strategy) {
  sha256 hash;
  const auto add = [&](const void* data, std::size_t bytes) { hash.add({static_cast<const char*>(data), bytes}); };
  bool any = !strategy.weights().empty();
  strategy.read_weights([&](std::span<const float> some) { add(some.data(), some.size_bytes()); });
  for (std::uint32_t t = 0; t < strategy.tables().windows().size(); ++t) {
    const row_table* const table = strategy.tables().shard(false, t);
    if (!table) continue;
    any = true;
    table->for_each_changed([&](std::uint64_t row, std::span<const float> weights) {
      add(&row, sizeof row);
      add(weights.data(), weights.size_bytes());
    });
  }
  return any ? hash.hex() : "";
}

nlohmann::json train(control_client& control, rank_job job, std::uint32_t rank, std::unique_ptr<session>& open) {
  session& s = *(open = std::make_unique<session>(control, std::move(job), rank));
  control.on_death([&s](std::uint32_t) { s.wake(); });
  control.on_describe([&s] { return s.report().describe(); });
  s.open();
  control.operation("waiting at the barrier \"ready\"", pace::rare);
  control.barrier("ready");
  const bool worker = s.cluster.worker >= 0;
  rank_record record = worker ? run_worker(s) : run_server(s);
  record.rank = static_cast<std::int32_t>(rank);
  record.worker = s.cluster.worker;
  record.server = s.cluster.server;
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  record.host = host;
  record.numa_node = numa_node_of(available_cpus());
  record.isa = instruction_set();
  if (worker) record.role = fmt::format("worker {}", s.cluster.worker);
  if (s.cluster.server >= 0) record.role += fmt::format("{}server {}", worker ? " + " : "", s.cluster.server);
  if (worker) record.weights_hash = hash_of_weights(s.strategy());
  record.layout = s.model().info().layout ? s.model().info().layout : "";
  record.kernels = s.model().kernels();
  record.warnings.insert(record.warnings.end(), s.strategy_warnings().begin(), s.strategy_warnings().end());
  record.memory_peak_bytes = memory_peak_bytes();
  control.operation("waiting at the barrier \"done\"", pace::rare);
  control.barrier("done"); // no rank leaves while others still read its memory
  s.close();
  nlohmann::json result = to_json(record);
  if (s.trace()) result["trace"] = s.trace()->take(rank, record.role); // the coordinator keeps it apart
  return result;
}

// Times the candidates for every kernel and returns the choices.
nlohmann::json tune(control_client& control, const rank_job& job) {
  control.operation("timing kernels", pace::unseen);
  const registry plugins = registry::of_files({job.files.begin(), job.files.end()});
  model_instance model(plugins, job.config.model, job.config.train,
                       model_setup_of(job.config, job.micro_batch(), RG_PURPOSE_TRAIN, nullptr, job.row_major),
                       [&](int level, const std::string& text) { control.log(level, text); });
  return {{"kernels", model.kernels()}};
}

} // namespace

int report_to_coordinator(control_client& control, const std::function<nlohmann::json()>& work) {
  try {
    control.result(work());
    return 0;
  } catch (const std::exception& e) {
    const auto* const known = dynamic_cast<const failure*>(&e);
    const int code = static_cast<int>(known ? known->code() : exit_code::run);
    control.failed(e.what(), code, dynamic_cast<const peer_failure*>(&e) ? blame::peer : blame::own);
    return code;
  }
}

int run_rank(control_client& control, std::uint32_t rank) {
  // The session outlives the report of a failure: destroying a transport with pending operations may end the process
  // (mpi).
  std::unique_ptr<session> open;
  const int code = report_to_coordinator(control, [&] {
    rank_job job = job_from_json(control.job());
    cap_instruction_set(job.config.train.isa); // before any plugin is loaded
    if (job.tune) return tune(control, job);
    nlohmann::json result = train(control, std::move(job), rank, open);
    control.on_death({}); // both callbacks refer to the session
    control.on_describe({});
    control.operation("destroying the plugins' objects", pace::rare);
    open.reset();
    return result;
  });
  control.on_death({});
  control.on_describe({});
  return code;
}

} // namespace regatta

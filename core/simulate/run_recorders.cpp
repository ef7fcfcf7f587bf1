// SPDX-License-Identifier: Apache-2.0
#include "simulate/run_recorders.hpp"

#include "timeline/trace_file.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace regatta {

run_recorders::run_recorders(const run_to_simulate& r) : run_(r) {
  const rank_job& job = r.run->job;
  const auto count = static_cast<std::uint64_t>(r.config->measure.trace);
  steps_.count = std::min(count, job.steps);
  steps_.first = job.warmup + (job.steps > count ? 1 : 0);
  for (const simulated_tensor& t : *r.tensors) steps_.tensors.push_back(t.name);
  for (std::uint32_t rank = 0; rank < job.layout.size(); ++rank) {
    steps_.recorders.push_back(&recorders_.emplace_back(trace_recorder::capacity_for(job.layout.size())));
    steps_.is_worker.push_back(job.layout.view(rank).worker >= 0);
  }
}

std::vector<std::string> run_recorders::write() {
  std::vector<rank_trace> traces;
  for (std::uint32_t rank = 0; rank < recorders_.size(); ++rank)
    traces.push_back(rank_trace_from(recorders_[rank].take(rank, run_.run->ranks.at(rank).role)));
  return write_trace_file(run_.trace, std::move(traces));
}

} // namespace regatta

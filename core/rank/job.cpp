// SPDX-License-Identifier: Apache-2.0
#include "rank/job.hpp"

#include "base/json_members.hpp"

#include <concepts>
#include <limits>
#include <type_traits>

#include <nlohmann/json.hpp>

namespace regatta {

optimizer_config rank_job::optimizer() const {
  optimizer_config o = config.optimizer;
  if (config.train.precision == "fp16" && o.clip_norm == 0) o.clip_norm = std::numeric_limits<double>::infinity();
  return o;
}

// All members but `config`.
template <class J, class Visit>
requires std::same_as<std::remove_const_t<J>, rank_job>
void each_member(J& job, Visit&& visit) {
  visit("workers", job.layout.workers);
  visit("servers", job.layout.servers);
  visit("server_rank", job.layout.server_rank);
  visit("host_of", job.layout.host_of);
  visit("files", job.files);
  visit("addresses", job.addresses);
  visit("batch", job.batch);
  visit("warmup", job.warmup);
  visit("steps", job.steps);
  visit("period", job.period);
  visit("kernels", job.kernels);
  visit("spin_ns", job.spin_ns);
  visit("tune", job.tune);
  visit("several_hosts", job.several_hosts);
  visit("row_major", job.row_major);
}

nlohmann::json to_json(const rank_job& job) {
  nlohmann::json j = members_to_json(job);
  j["config"] = to_json(job.config);
  return j;
}

rank_job job_from_json(const nlohmann::json& j) {
  rank_job job;
  take_members(j, job);
  job.config = case_from_json(member<nlohmann::json>(j, "config"));
  return job;
}

} // namespace regatta

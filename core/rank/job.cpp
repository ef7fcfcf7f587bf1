// SPDX-License-Identifier: Apache-2.0
#include "rank/job.hpp"

#include <limits>

#include <nlohmann/json.hpp>

namespace regatta {

optimizer_config rank_job::optimizer() const {
  optimizer_config o = config.optimizer;
  if (config.train.precision == "fp16" && o.clip_norm == 0) o.clip_norm = std::numeric_limits<double>::infinity();
  return o;
}

nlohmann::json to_json(const rank_job& job) {
  return {{"config", to_json(job.config)},
          {"workers", job.layout.workers},
          {"servers", job.layout.servers},
          {"server_rank", job.layout.server_rank},
          {"host_of", job.layout.host_of},
          {"files", job.files},
          {"addresses", job.addresses},
          {"batch", job.batch},
          {"warmup", job.warmup},
          {"steps", job.steps},
          {"period", job.period},
          {"kernels", job.kernels},
          {"spin_ns", job.spin_ns},
          {"tune", job.tune},
          {"several_hosts", job.several_hosts},
          {"row_major", job.row_major}};
}

rank_job job_from_json(const nlohmann::json& j) {
  rank_job job;
  job.config = case_from_json(j.at("config"));
  j.at("workers").get_to(job.layout.workers);
  j.at("servers").get_to(job.layout.servers);
  j.at("server_rank").get_to(job.layout.server_rank);
  j.at("host_of").get_to(job.layout.host_of);
  j.at("files").get_to(job.files);
  j.at("addresses").get_to(job.addresses);
  j.at("batch").get_to(job.batch);
  j.at("warmup").get_to(job.warmup);
  j.at("steps").get_to(job.steps);
  j.at("period").get_to(job.period);
  j.at("kernels").get_to(job.kernels);
  j.at("spin_ns").get_to(job.spin_ns);
  j.at("tune").get_to(job.tune);
  j.at("several_hosts").get_to(job.several_hosts);
  j.at("row_major").get_to(job.row_major);
  return job;
}

} // namespace regatta

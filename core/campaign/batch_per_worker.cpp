// SPDX-License-Identifier: Apache-2.0
#include "campaign/batch_per_worker.hpp"

#include "base/failure.hpp"

#include <fmt/format.h>

namespace regatta {

std::uint64_t batch_per_worker(const case_config& c, const std::function<std::uint64_t()>& tokens_of_sample) {
  const bool strong = c.train.scaling == "strong";
  const std::uint64_t sharing = strong ? static_cast<std::uint64_t>(c.cluster.workers) : 1,
                      batch = static_cast<std::uint64_t>(c.train.batch),
                      micros = static_cast<std::uint64_t>(c.train.accumulate);
  if (c.train.batch_unit == "tokens") {
    const std::uint64_t tokens = tokens_of_sample();
    const std::uint64_t samples = batch / tokens / sharing / micros * micros;
    if (!samples)
      throw failure(
          exit_code::usage,
          fmt::format("train.batch: expected {} tokens or more, one sample of {} for each of {} workers and {} "
                      "micro-batches, got {}",
                      tokens * sharing * micros, tokens, sharing, micros, batch));
    return samples;
  }
  if (batch % sharing)
    throw failure(exit_code::usage,
                  fmt::format("train.batch: expected a multiple of the {} workers, which share the batch "
                              "(train.scaling = \"strong\"), got {}",
                              sharing, batch));
  const std::uint64_t mine = batch / sharing;
  if (mine % micros)
    throw failure(exit_code::usage,
                  fmt::format("train.accumulate: expected a divisor of a worker's batch of {}, got {}", mine, micros));
  return mine;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/experiment.hpp"

#include <cstdint>
#include <functional>

namespace regatta {

// [any] Returns the samples that a worker computes in one step, over all its micro-batches: of train.batch, which is
// that of a worker (scaling = "weak") or of all of them ("strong"), in samples or in tokens. `tokens_of_sample` returns
// the token positions of a sample; it is called only for a batch in tokens. Throws failure (usage) if the batch cannot
// be divided among workers and micro-batches, and what `tokens_of_sample` throws.
std::uint64_t batch_per_worker(const case_config& c, const std::function<std::uint64_t()>& tokens_of_sample);

} // namespace regatta

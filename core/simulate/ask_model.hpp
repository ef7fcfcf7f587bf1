// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/experiment.hpp"
#include "rank/model.hpp"
#include "registry/registry.hpp"

#include <functional>

#include <nlohmann/json.hpp>

namespace regatta {

// [main] Calls `answer` in a child process with an instance of the case's model that only describes itself
// (RG_PURPOSE_INIT), for batches of one sample. Returns the answer. Throws failure: usage or skipped if the model
// refuses the case, plugin if it crashes or hangs.
nlohmann::json ask_model(const registry& plugins, const case_config& c,
                         const std::function<nlohmann::json(const model_instance&)>& answer);

} // namespace regatta

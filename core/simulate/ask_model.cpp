// SPDX-License-Identifier: Apache-2.0
#include "simulate/ask_model.hpp"

#include "registry/run_in_child.hpp"

#include <cstdint>
#include <string_view>

#include <regatta/ext/step_collectives.h>
#include <regatta/plugin.hpp>

namespace regatta {

using nlohmann::json;

json ask_model(const registry& plugins, const case_config& c,
               const std::function<json(const model_instance&)>& answer) {
  return run_in_child([&](const stage_function& stage) {
    const registry loading = plugins.loading();
    stage("model " + c.model.id, "was described");
    auto collectives = rg::make_versioned<rg_step_collectives>();
    collectives.workers = 2;
    collectives.reserve = [](void*, std::uint64_t) {};
    collectives.all_reduce = [](void*, const char*, double*, std::uint64_t) { return rg_status{RG_E_PLUGIN}; };
    return answer(model_instance(
        loading, c.model, c.train, model_setup_of(c, 1, RG_PURPOSE_INIT, nullptr, false), plugin_host::log_function(),
        [&](std::string_view id) -> const void* { return id == RG_EXT_STEP_COLLECTIVES ? &collectives : nullptr; }));
  });
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Begins a campaign in its folder, or goes on with one (--resume), for `regatta run` and `regatta simulate`.
#pragma once

#include "campaign/plugin_facts.hpp"
#include "campaign/plugin_files.hpp"
#include "cli/run_screen.hpp"
#include "config/load.hpp"
#include "report/result_folder.hpp"
#include "results/campaign_records.hpp"
#include "results/result_document.hpp"

#include <filesystem>

#include <nlohmann/json.hpp>

namespace regatta {

// [main] Returns the context's "plugins": the model, executor, strategy and transport of each case, with the parameters
// of the first case that has it; then the transports that those open within them (`over` of shaped), and the plugins of
// the baselines. Each plugin is listed once; "nested_in" has the transports of cases that open it, themselves or by
// another one.
nlohmann::json plugins_of(plugin_facts_cache& answers, const experiment& e, plugin_files& files);

// [main] Adds the files of the experiment: as written and resolved, and each case. `file` is empty if there is none:
// then only the cases. Throws failure (usage) if the file was changed meanwhile.
void add_resolved(result_folder& folder, const experiment& e, const std::filesystem::path& file,
                  const overrides& changes, const registry& plugins);

// [main] Reads the records of a campaign in the folder, which result_folder allows only with --resume, or begins a
// campaign if there are none. Throws failure (usage) if the first record is damaged, if the records were measured with
// another experiment, program, plugin, data or machine, or if some are simulated and others would be measured.
void begin_or_resume(result_folder& folder, campaign_records& records, result_document& results,
                     const nlohmann::json& context, run_screen& s);

// [main] Writes the result while the campaign runs. Returns why that failed; empty: it did not. `before` is what the
// last call returned: the user is told of a failure once, until writing works again.
std::string write_result(result_folder& folder, const std::string& before, run_screen& s);

} // namespace regatta

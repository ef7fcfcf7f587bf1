// SPDX-License-Identifier: Apache-2.0
//
// The "context" of result.json: what was measured, by which program, where.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/experiment.hpp"

namespace regatta {

// The experiment as one object: the sections of its first case, a plugin's parameters under "parameters" beside its
// name; "sweep", an array of {key, values} in the order of the sweep; and "report".
nlohmann::json resolved_experiment(const experiment& e);

// A result begun now by this program: its version, git state and build type, the date (UTC), and what is passed.
// `hosts` is an array of describe_host(), `plugins` one of {kind, id, version, path, sha256, parameters}.
nlohmann::json make_context(const std::string& command, const experiment& e, nlohmann::json hosts,
                            nlohmann::json plugins, const std::vector<std::string>& warnings);
// As above, of a measurement that is no experiment.
nlohmann::json make_context(const std::string& command, nlohmann::json hosts, nlohmann::json plugins,
                            const std::vector<std::string>& warnings);

// Why a campaign begun under `before` cannot be resumed under `now`; empty: it can. Experiment, program, plugins' binaries,
// data and hosts must be the same, which is said by name. `before` may be any object, `now` is of make_context().
std::string resume_conflict(const nlohmann::json& before, const nlohmann::json& now);

// Arguments as one line that a shell would split again.
std::string command_line(const std::vector<std::string>& arguments);

// "debug build: ..." where this program was not built for speed.
std::optional<std::string> build_warning();

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The "context" of result.json: the experiment, the program and the machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiment/experiment.hpp"

namespace regatta {

// Returns the experiment as one object: the sections of its first case, with a plugin's parameters under "parameters"
// beside its name; "sweep", an array of {key, values} in the order of the sweep; and "report", an array with the
// tables of [report]. Claims are no part of it. Requires at least one case.
nlohmann::json resolved_experiment(const experiment& e);

// Returns "regatta" (version), "git" (state) and "build" (type) of this program; null if the build does not know them.
nlohmann::json build_of_program();

// Returns the context of a result that begins now: version, git state and build type of this program (null if the build
// does not know them), the date (UTC), the arguments, the resolved experiment, its settings that differ from the
// defaults ("given"), the number of cases, and the warnings. `command` is a command_line(), `hosts` an array of
// describe_host(), `plugins` an array of {kind, id, version, path, sha256, parameters}. The caller adds "data".
nlohmann::json make_context(const std::string& command, const experiment& e, nlohmann::json hosts,
                            nlohmann::json plugins, const std::vector<std::string>& warnings);
// The same without an experiment, for other commands.
nlohmann::json make_context(const std::string& command, nlohmann::json hosts, nlohmann::json plugins,
                            const std::vector<std::string>& warnings);

// Returns why a campaign that began under the context `before` cannot be resumed under `now`; empty: it can. Experiment
// (but for [report]; it has no claims), program, plugin binaries, data and hosts (name, CPU model, cores) must be the
// same, and `before` must have all members of `now`; the text names the first of these that differs. `before` may be
// any JSON object; `now` is from make_context(), with "data". Throws nlohmann::json::exception if an element of a list
// in `before` has the wrong type.
std::string resume_conflict(const nlohmann::json& before, const nlohmann::json& now);

// Returns the arguments as one line that a shell splits into the same arguments.
std::string command_line(const std::vector<std::string>& arguments);

} // namespace regatta

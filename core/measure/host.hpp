// SPDX-License-Identifier: Apache-2.0
//
// Under which circumstances a result came about: the "context" of result.json. Everything is read from the machine and
// from the program itself; what cannot be read is null.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// This machine: name, cpu with its vector extensions, cores (that this process may run on), memory_bytes (that it may
// use: the control group's limit where it is smaller), governor, gpus, interfaces, kernel, libraries. `cgroup_cpus` is
// the caller's cgroup_cpu_limit(); infinity becomes null.
nlohmann::json describe_host(double cgroup_cpus);

// The "context" of a result begun now by this program: its version, git state and build type, the date (UTC), and what
// is passed. `plugins` is an array of {kind, id, version, path, sha256, parameters}.
nlohmann::json make_context(const std::string& command, nlohmann::json experiment, nlohmann::json hosts,
                            nlohmann::json plugins, const std::vector<std::string>& warnings);

// Arguments as one line that a shell would split again.
std::string command_line(const std::vector<std::string>& arguments);

// "debug build: ..." where this program was not built for speed.
std::optional<std::string> build_warning();

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

// Runs `regatta list`: prints every component of kind `only` (std::nullopt: of every kind) with its file, and every
// file that cannot be used with the reason. Returns 0, or 3 if a file cannot be used; the listing is complete in both
// cases. Throws failure (plugin) if a folder cannot be read. [main]
int list_verb(const std::vector<std::filesystem::path>& folders, std::optional<kind> only, bool json);

// Returns lines "KIND ID: reason" for components that the build left out, from the file left-out.txt of each folder; a
// folder without that file adds none.
std::vector<std::string> left_out(const std::vector<std::filesystem::path>& folders);

} // namespace regatta

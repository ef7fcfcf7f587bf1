// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

// `regatta list`: prints every component (of the kind asked for), where it was found, and every file that could not be
// used and why. Returns 0, or 3 where a file could not be used: the listing is complete in both cases. Throws failure
// where a folder cannot be read. [main]
int list_verb(const std::vector<std::filesystem::path>& folders, std::optional<kind> only, bool json);

// "KIND ID: reason", of what the build left out; it lies beside the plugins.
std::vector<std::string> left_out(const std::vector<std::filesystem::path>& folders);

} // namespace regatta

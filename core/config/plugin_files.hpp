// SPDX-License-Identifier: Apache-2.0
//
// Values of model.plugin, strategy.plugin and transport.plugin that are a plugin's file and not an id: a text with '/'
// or with the ending ".so", such as "./mine.so".
#pragma once

#include "config/cases.hpp"
#include "config/diagnostics.hpp"
#include "config/settings.hpp"

#include <string>
#include <vector>

namespace regatta {

// Returns the absolute paths of these files, those of the sweep included, each once. They may be missing.
std::vector<std::string> plugin_files(const settings& all, const folders& start);

// Replaces each file by the id of its component of the key's kind. A component that another plugin with the same id
// hides does not count. If the file has none or several of this kind, adds an error and marks the key as spoiled:
// later checks skip it.
void replace_plugin_files(settings& all, const folders& start, const catalogue& components, diagnostics& wrong);

} // namespace regatta

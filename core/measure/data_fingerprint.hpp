// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "config/experiment.hpp"

namespace regatta {

// What tells a data set from another of the same path: {path, format, files, bytes, sha256}. `path` is a file, or a folder
// with the files that `format` reads there. The SHA-256 is of all names and sizes and of the contents: of up to 64 MiB
// all, of more four evenly spread pieces of 64 KiB of each of 256 evenly picked files. Times do not count: a copy has
// the same one. Data that cannot be read have null there. [main]
nlohmann::json fingerprint_of_data(const std::string& path, const std::string& format);

// Those of every data set that the experiment's cases read or evaluate on, by path.
nlohmann::json fingerprints_of_data(const experiment& e);

} // namespace regatta

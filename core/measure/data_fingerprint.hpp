// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "config/experiment.hpp"

namespace regatta {

// [main] Returns an object that distinguishes a data set from others at the same path: {path, format, files, bytes,
// sha256}. `path` is a file, or a folder with the files that `format` reads there. The SHA-256 covers all names, sizes
// and contents: all bytes of up to 64 MiB; of larger data, four evenly spread parts of 64 KiB from each of 256 evenly
// chosen files. Time stamps do not count, so a copy has the same hash. The last three members are null for data that
// cannot be read.
nlohmann::json fingerprint_of_data(const std::string& path, const std::string& format);

// Returns the fingerprints of all data sets that the experiment's cases train or evaluate on, by path.
nlohmann::json fingerprints_of_data(const experiment& e);

} // namespace regatta

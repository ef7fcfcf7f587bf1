// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "experiment/experiment.hpp"

namespace regatta {

// [main] Returns an object that distinguishes a data set from others at the same path: {path, format, files, bytes,
// sha256}. `path` is a file, or a folder, of which all files count that can be data of `format` (data.format; "" for a
// vocabulary) by their names, also those that this run does not read. The SHA-256 covers the files' names relative to
// the folder, sizes and contents: all bytes if they are at most 64 MiB together; of larger data, four evenly spread
// parts of 64 KiB (all of a smaller file) from each of at most 256 evenly chosen files. Time stamps and the name of a
// single file do not count, so a copy has the same hash. `files` is the number of files, `bytes` their total size. The
// last three members are null for data that cannot be read; nothing is thrown.
nlohmann::json fingerprint_of_data(const std::string& path, const std::string& format);

// Returns an array of the fingerprints of all data sets and vocabularies that the experiment's cases read, ascending by
// path, each once.
nlohmann::json fingerprints_of_data(const experiment& e);

} // namespace regatta

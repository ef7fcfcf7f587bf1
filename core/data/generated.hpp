// SPDX-License-Identifier: Apache-2.0
//
// Learnable data in the formats of data.format, where the real data is not available: written by `regatta data make`,
// and by `data.generate` at first use.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace regatta {

struct data_config; // config/experiment.hpp

struct generated_data {
  const char* format;   // as in data.format
  const char* contents; // describes the folder, for people
  const char* train;    // the path below the folder that data.path must name; "": the folder itself
  void (*make)(const std::filesystem::path& folder);
};

std::span<const generated_data> all_generated_data();

// Returns null if there is no generator for this format.
const generated_data* find_generated_data(std::string_view format);

// [main] Writes the data into `folder`, which must be missing or empty: completely or not at all. A format always gives
// the same files. Throws failure: usage if the folder is not empty, run if it cannot be written.
void make_data(const generated_data& data, const std::filesystem::path& folder);

struct missing_data {
  const generated_data* data;
  std::filesystem::path folder;
};
// [main] Returns the data to generate and its folder if data.generate is set and nothing exists at data.path; else
// std::nullopt. Throws failure (usage) if there is no generator for the format, or if data.path would not name the
// generated data.
std::optional<missing_data> data_to_generate(const data_config& config);

} // namespace regatta

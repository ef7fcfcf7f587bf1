// SPDX-License-Identifier: Apache-2.0
//
// Learnable data in the formats of data.format, for where the real data cannot be had: what `regatta data make` writes,
// and what `data.generate` makes at first use.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace regatta {

struct data_config; // config/experiment.hpp

struct generated_data {
  const char* format;   // as in data.format
  const char* contents; // of the folder, for people
  const char* train;    // where data.path has to point, below the folder; "": to the folder itself
  void (*make)(const std::filesystem::path& folder);
};

std::span<const generated_data> all_generated_data();

// Returns null where nothing generates this format.
const generated_data* find_generated_data(std::string_view format);

// Writes the data into `folder`, which must be missing or empty: whole, or not at all. The same format always gives the
// same files. Throws failure: usage where the folder holds something, run where it cannot be written. [main]
void make_data(const generated_data& data, const std::filesystem::path& folder);

// With data.generate, where there is nothing at data.path: the data to make, and its folder. Throws failure (usage) where
// nothing generates the format, or where data.path would not point to what is generated. [main]
struct missing_data {
  const generated_data* data;
  std::filesystem::path folder;
};
std::optional<missing_data> data_to_generate(const data_config& config);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Generates learnable data in the formats of data.format, for users who lack the real data. `regatta data make` writes
// it, and so does a run with data.generate set if data.path does not exist.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace regatta {

struct data_config; // experiment/experiment.hpp

struct data_generator {
  const char* format;   // as in data.format
  const char* contents; // describes the folder, for people
  const char* train;    // the path below the folder that data.path must name; "": the folder itself
  // Writes the files, one after the other; write_generated_data() calls it.
  void (*generate)(const std::filesystem::path& folder);
};

// [any] Returns all generators; valid for ever.
std::span<const data_generator> all_data_generators();

// [any] Returns the generator for a format, as in data.format; null: there is none.
const data_generator* find_data_generator(std::string_view format);

// [main] Writes the data into `folder`, which must be missing or empty, completely or not at all: a temporary folder
// beside it is renamed. Creates its parents. A format always gives the same files. If another process fills `folder`
// meanwhile, keeps that. Throws failure: usage if it is not empty or cannot be read at the start, or if this build
// cannot generate the format (imagenet without a JPEG encoder), run if it cannot be written.
void write_generated_data(const data_generator& data, const std::filesystem::path& folder);

// Arguments for write_generated_data(); `data` is valid for ever.
struct missing_data {
  const data_generator* data;
  std::filesystem::path folder;
};
// [main] Returns the data to generate and its folder if the case trains on a dataset, data.generate is set and nothing
// exists at data.path; else std::nullopt. Throws failure (usage) if there is no generator for the format, or if
// data.path does not end as data_generator::train says. Writes nothing.
std::optional<missing_data> data_to_generate(const data_config& config);

} // namespace regatta

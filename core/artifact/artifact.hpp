// SPDX-License-Identifier: Apache-2.0
//
// Artifacts: a result with everything that another machine needs to measure it again, as one .tar.gz.
//
//   artifact.json       schema regatta.artifact/1: the run card (command, date, version, git state, build, hosts and
//                       data sets of the run), plugins, claims, and the SHA-256 of every other file
//   experiment.toml     the whole experiment with the options of its command line, without paths of the machine
//   as-written.toml     the file as its author wrote it; resolved*.toml: one for each case
//   result.json         the result with its claims
//   plugins/FILE.so     the binaries of plugins that do not come with Regatta
//   sources/NAME/...    their sources, with a CMakeLists.txt
#pragma once

#include "files/archive.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

struct packed_artifact {
  std::vector<archived_file> files;
  std::vector<std::string> notes; // what is left out, and why
};

// [main] Packs the result in `folder`. `sources` are folders and files with the sources of its plugins; empty: those of
// sources_of() (sources.hpp) for each plugin that does not come with Regatta. Throws failure (usage) if `folder` holds
// no result of this version (one of `run --again` lacks the TOML files) or a simulated one, if source_files() of a
// given source throws, or if two given sources have one name (source_name()).
packed_artifact pack(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& sources);

// A plugin of an artifact, as artifact.json lists it.
struct artifact_plugin {
  std::string kind, id, version, sha256;
  bool built_in = false; // comes with Regatta
  std::string file;      // "plugins/mine.so"; empty: not packed
  bool operator==(const artifact_plugin&) const = default;
};

struct artifact {
  nlohmann::json run_card, result;
  std::string experiment; // experiment.toml
  std::vector<artifact_plugin> plugins;
  std::vector<std::string> sources; // "sources/NAME": the folders in it that have a CMakeLists.txt
  std::vector<archived_file> files; // all of them
};

// [any] Reads a .tar.gz, which may come from a stranger. Throws failure (usage), whose text says what is wrong: no
// archive (read_archive()), a file that is missing, not listed, or has another SHA-256, a member of artifact.json or of
// the result that has another form, or control characters in the claims or cases of the result. The SHA-256 sums reveal
// damage, not manipulation: a forger can change them, too.
artifact read_artifact(std::string_view bytes);

} // namespace regatta

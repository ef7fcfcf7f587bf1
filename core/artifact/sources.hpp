// SPDX-License-Identifier: Apache-2.0
//
// The sources of a plugin, for an artifact.
#pragma once

#include "files/archive.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace regatta {

// [main] Returns where the sources of a plugin's file are: the source folder that CMake has recorded in CMakeCache.txt
// in the file's folder or in one of the two above it, std::nullopt if that source folder is gone; without such a
// CMakeCache.txt NAME.cpp or NAME.c beside NAME.so; else std::nullopt.
std::optional<std::filesystem::path> sources_of(const std::filesystem::path& plugin);

// [main] Returns the files of a folder of sources, or one source file, below "sources/NAME/", where NAME is
// source_name(path), sorted by name. Leaves out hidden files and folders, links, and build folders (with a
// CMakeCache.txt). Adds a CMakeLists.txt that builds one plugin from all C and C++ files if there is none. Throws
// failure (usage) if there is no such file or folder, if a file cannot be read, or if a folder has more than 500 files
// or 16 MiB.
std::vector<archived_file> source_files(const std::filesystem::path& path);

// [any] Returns NAME of "sources/NAME/" for a path: the name of the folder or file without its last ending, with '_'
// for each byte that is no ASCII letter or digit, at most 64 bytes.
std::string source_name(const std::filesystem::path& path);

} // namespace regatta

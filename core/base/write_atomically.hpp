// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace regatta {

// Replaces `file` by `text`: a reader sees either the old or the new contents completely, also after a crash. Replaces
// a link at that path, never follows it. Throws failure (run) and leaves the old file unchanged.
void write_atomically(const std::filesystem::path& file, const std::string& text);

// Returns whether `name` is a temporary file that write_atomically() made for `file` before its process was killed.
bool is_leftover(const std::string& name, const std::string& file);

// Writes the directory entry of `file` to the disk (fsync of its folder).
void sync_folder_of(const std::filesystem::path& file);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace regatta {

// Replaces `file` by `text`: a reader sees the old or the new contents whole, also after a crash. Throws failure (run)
// and leaves the old file as it was; a link in its place is replaced, never followed.
void write_atomically(const std::filesystem::path& file, const std::string& text);

// Whether `name` is that of a file that write_atomically() was writing for `file` when its process was killed.
bool is_leftover(const std::string& name, const std::string& file);

// Brings the names in the folder of `file` to the disk.
void sync_folder_of(const std::filesystem::path& file);

} // namespace regatta

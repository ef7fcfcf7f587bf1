// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace regatta {

// [any] Creates or replaces `file` with the contents `text`: writes a temporary file in the same folder, which must
// exist, calls fsync, and renames it. A reader sees the old or the new contents completely, also after a crash of the
// machine. The new file has default permissions. Replaces a link at that path, never follows it. Throws failure (run)
// if a step up to the rename fails; the old file is then unchanged, and the temporary file removed. Ignores a failing
// fsync of the folder after the rename: then a crash of the machine may bring the old contents back.
void write_atomically(const std::filesystem::path& file, const std::string& text);

// Returns whether `name` has the form of a temporary file that write_atomically() leaves if its process is killed while
// it writes `file`. Both are names without a folder.
bool is_leftover(const std::string& name, const std::string& file);

// Writes the directory entry of `file` to the disk (fsync of its folder). Ignores errors.
void sync_folder_of(const std::filesystem::path& file);

// [any] Returns whether the open file `fd` is still the one at the path `file`: it was not removed or replaced. Does
// not follow a link at that path.
bool is_open_at(int fd, const std::filesystem::path& file);

} // namespace regatta

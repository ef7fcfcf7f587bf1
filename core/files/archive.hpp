// SPDX-License-Identifier: Apache-2.0
//
// Archives of files as .tar.gz: POSIX ustar (IEEE Std 1003.1, pax, "ustar Interchange Format"), compressed by gzip.
// `tar xzf` reads what is written here. What is read may come from strangers: only plain files with names below the
// archive's folder are accepted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

struct archived_file {
  std::string name; // a relative path with '/', such as "plugins/mine.so"
  std::string content;
};

// The most that an archive may hold, in bytes of all contents, and in files.
inline constexpr std::uint64_t most_archived_bytes = std::uint64_t{512} << 20;
inline constexpr std::size_t most_archived_files = 10'000;

// [any] Returns the archive. Equal files give equal bytes: they are sorted by name, without times or owners. Throws
// failure (usage) if a name is not allowed (is_archive_name()), is given twice or is too long for ustar, or if there is
// more than the most.
std::string write_archive(std::vector<archived_file> files);

// [any] Returns the files of an archive. Folders in it are ignored. Throws failure (usage), whose text says what is
// wrong, if `bytes` is no complete .tar.gz, has a wrong checksum, holds more than the most, or holds a link, a device
// or another entry that is neither a plain file nor a folder, a name that is not allowed or comes twice, or a file that
// is the folder of another.
std::vector<archived_file> read_archive(std::string_view bytes);

// [any] As read_archive(), of the archive before its compression, which must not be longer than the most.
std::vector<archived_file> read_tar(std::string_view tar);

// [any] Returns whether a name may be in an archive: a relative path of at most 255 bytes, in UTF-8 without control
// characters and backslashes, of which no part is empty, "." or "..".
bool is_archive_name(std::string_view name);

// [main] Writes the files below `folder`, which must exist and in which no other process writes. Makes the folders that
// are needed. Never replaces a file and follows no link. Requires names that are allowed. Throws failure (run) if that
// is impossible.
void unpack_archive(const std::vector<archived_file>& files, const std::filesystem::path& folder);

} // namespace regatta

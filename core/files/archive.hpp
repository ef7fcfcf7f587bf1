// SPDX-License-Identifier: Apache-2.0
//
// Archives of files as .tar.gz: POSIX ustar (IEEE Std 1003.1, pax, "ustar Interchange Format"), compressed by gzip.
// `tar xzf` reads what is written here. Archives that are read may come from strangers: only plain files with names
// below the archive's folder are accepted.
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

// The limits of write_archive(), in bytes of all contents together, and in files. read_archive() has limits of its own,
// which follow from these.
inline constexpr std::uint64_t most_archived_bytes = std::uint64_t{512} << 20;
inline constexpr std::size_t most_archived_files = 10'000;

// [any] Returns the archive. Equal files give equal bytes: they are sorted by name, without times or owners. Throws
// failure (usage) if a name is not allowed (is_archive_name()), is given twice or is too long for ustar, if a file is
// the folder of another, or if there are more than most_archived_bytes or most_archived_files.
std::string write_archive(std::vector<archived_file> files);

// [any] Returns the files of an archive, without its folders. Throws failure (usage), whose text says what is wrong, if
// `bytes` is no complete .tar.gz or has a wrong checksum; if it has more than most_archived_files entries, files and
// folders together; if it uncompresses to more than most_archived_bytes plus 1536 bytes (headers and padding) for each
// of most_archived_files; or if it holds a link, a device or another entry that is neither a plain file nor a folder, a
// file whose name is not allowed or comes twice, or a file that is the folder of another.
std::vector<archived_file> read_archive(std::string_view bytes);

// [any] As read_archive(), of an archive that is not compressed. Limits the number of entries, but not the bytes.
std::vector<archived_file> read_tar(std::string_view tar);

// [any] Returns whether a name may be in an archive: a relative path of at most 255 bytes, in UTF-8, of which no part
// is empty, "." or "..", without backslashes and without the characters that cleaned() in base/text.hpp replaces:
// control characters, line separators, those that change the direction of text, U+FFFE and U+FFFF.
bool is_archive_name(std::string_view name);

// [main] Writes the files below `folder`. Creates folders that are missing. Requires allowed names, which it does not
// check, and that `folder` exists, that no other process writes in it, and that it holds no links to folders: it would
// write to their targets. Throws failure (run) if a file or folder cannot be created or written, or if there already is
// a file or a link in the place of a file.
void unpack_archive(const std::vector<archived_file>& files, const std::filesystem::path& folder);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace regatta {

// [any] Returns the entries of a folder for which `wanted` is true, sorted by path. Throws failure (usage) if the
// folder cannot be listed.
std::vector<std::filesystem::path>
sorted_entries(const std::filesystem::path& folder,
               const std::function<bool(const std::filesystem::directory_entry&)>& wanted);

// The bytes of a regular file, mapped into memory, read-only, during the lifetime of this object. If the file is
// truncated meanwhile, a read raises SIGBUS: the process names the file on standard error and dies of the signal.
class mapped_file {
public:
  // [any] Maps the whole file; an empty file gives empty bytes(). Throws failure (usage) if there is no such file, it
  // is no regular file or cannot be read.
  explicit mapped_file(const std::filesystem::path& path);
  ~mapped_file();
  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&&) = delete;

  std::span<const std::uint8_t> bytes() const noexcept { return bytes_; }
  const std::string& name() const noexcept { return name_; } // the path, for messages

private:
  struct mapping;

  std::string name_;
  std::span<const std::uint8_t> bytes_;
  mapping* mapping_ = nullptr;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace regatta {

// The right to write into a folder, held by one process at a time through the file `lock` in it. The kernel gives it
// back however the process ends; an orderly end also removes the file.
//
// It is a POSIX record lock, not flock(): the kernel then knows the holder's pid, and a child process that outlives the
// holder does not keep the lock. Such a lock is the process's, so two objects of one process do not exclude each other,
// and nothing else in the process may open and close the file.
class folder_lock {
public:
  // Throws failure (usage) with the pid of the process that holds the lock, or failure (run) where there is none to be
  // had.
  explicit folder_lock(const std::filesystem::path& folder);
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

  // Whether the lock is still the one in the folder; false where file or folder were removed.
  bool holds() const;

private:
  std::filesystem::path file_;
  int fd_ = -1;
};

} // namespace regatta

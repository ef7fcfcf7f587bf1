// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace regatta {

// A lock on a folder for one writing process at a time, held through the file `lock` in the folder. The kernel releases
// it whenever the process ends; the destructor also removes the file.
//
// It is a POSIX record lock, not flock(): the kernel then knows the holder's pid, and a child process that outlives the
// holder does not keep the lock. Such a lock belongs to the process: two objects in one process do not exclude each
// other, and no other code of the process may open and close the file.
class folder_lock {
public:
  // Locks at once or throws: failure (usage) with the pid of the process that holds the lock, or failure (run) if
  // locking is impossible.
  explicit folder_lock(const std::filesystem::path& folder);
  ~folder_lock();
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;

  // Returns whether the locked file is still in the folder. False if file or folder were removed or replaced: another
  // process may then have locked the folder.
  bool holds() const;

private:
  std::filesystem::path file_;
  int fd_ = -1;
};

} // namespace regatta

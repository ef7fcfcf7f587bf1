// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace regatta {

class registry;

// The files of the plugins as they were when the campaign began. Ranks open them anew in every run, so a result names
// the binaries that ran only if the files stay as they are.
class plugin_files {
public:
  // Takes the SHA-256 of every plugin's file. Throws failure (plugin) where one cannot be read. [main]
  explicit plugin_files(const registry& plugins);

  // SHA-256 by path of these files, for the run that opens them next. Throws failure (run), with the plugin's name,
  // where one has other contents than at the beginning. Reads a file only if inode, size or times changed. [main]
  std::map<std::string, std::string> verified(const std::vector<std::string>& files);

private:
  struct identity {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const identity&) const = default;
  };
  struct known {
    std::string name; // "model mlp"
    identity id;
    std::string sum;
  };
  static identity identity_of(const std::string& file);

  std::map<std::string, known> files_; // by path
};

} // namespace regatta

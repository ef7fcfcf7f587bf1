// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace regatta {

class registry;

// The plugin files as they were when this object was created. Ranks open the files in every run, so the SHA-256 sums in
// a result are right only if the files do not change during the campaign.
class plugin_files {
public:
  // Computes the SHA-256 of every plugin file. Throws failure (plugin) if a file cannot be read. [main]
  explicit plugin_files(const registry& plugins);

  // Returns the SHA-256 (hexadecimal) of these files by path; call it before the run that opens them. The files must be
  // the registry's. Throws failure: run, with the plugin's name, if a file is missing or its contents changed; plugin
  // if it cannot be read. Reads a file only if its inode, size or times changed. [main]
  std::map<std::string, std::string> verified(const std::vector<std::string>& files);

private:
  struct identity {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const identity&) const = default;
  };
  struct known {
    std::string name; // all components in the file: "model mlp, strategy ring"
    identity id;
    std::string sum;
  };
  static identity identity_of(const std::string& file);

  std::map<std::string, known> files_; // by path
};

} // namespace regatta

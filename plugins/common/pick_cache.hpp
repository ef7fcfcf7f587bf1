// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace plugins {

// Results of autotuning that are kept between runs, so that a kernel is timed once. The cache is a text file with one
// line "key, algorithm, why" per result, separated by tabs. It may be deleted at any time. A file with another heading
// and lines of another form are ignored. If the file cannot be read or written, kernels are timed again.
class pick_cache {
public:
  // `owner` is the name of the plugin. With an empty path the cache neither reads nor writes a file.
  pick_cache(std::string owner, std::filesystem::path file);
  // Returns $XDG_CACHE_HOME/regatta/OWNER-picks, else ~/.cache/regatta/OWNER-picks; empty if neither variable holds an
  // absolute path.
  static std::filesystem::path usual_file(const std::string& owner);

  const std::filesystem::path& file() const { return file_; }
  // Returns the algorithm for a key, or null. The pointer is valid until the next add().
  const std::string* find(const std::string& key) const;
  void add(const std::string& key, const std::string& algorithm, const std::string& why);
  // Reads the file again, merges the new results into it and replaces it atomically. Returns false if that failed.
  bool save();

private:
  struct pick {
    std::string algorithm, why;
  };
  using picks = std::map<std::string, pick>;
  picks read() const;

  std::string heading_;
  std::filesystem::path file_;
  picks known_, added_;
};

} // namespace plugins

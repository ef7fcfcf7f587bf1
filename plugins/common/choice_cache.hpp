// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace plugins {

// Results of autotuning that are kept between runs, so that kernels or algorithms are timed once. The cache is a text
// file: a heading, then one line "key, algorithm, why" per result, separated by tabs. It may be deleted at any time. A
// file with another heading or of more than 8 MiB, and lines of another form, are ignored: those results are then
// measured again. One thread at a time; several processes may use one file, where simultaneous saves may lose results.
class choice_cache {
public:
  // Reads the file, if there is one; a failure counts as no results. `owner` is the name of the plugin. With an empty
  // path the cache neither reads nor writes a file.
  choice_cache(std::string owner, std::filesystem::path file);
  // Returns $XDG_CACHE_HOME/regatta/OWNER-choices, else $HOME/.cache/regatta/OWNER-choices; empty if neither variable
  // holds an absolute path.
  static std::filesystem::path usual_file(const std::string& owner);

  const std::filesystem::path& file() const { return file_; }
  // Returns the algorithm for a key, from the file or from add(), or null. The pointer is valid until the next add().
  const std::string* find(const std::string& key) const;
  // Adds a result, or replaces that of the same key: find() returns it from now on, and save() writes it to the file.
  // `why` is for readers of the file. The texts must contain no tab and no newline.
  void add(const std::string& key, const std::string& algorithm, const std::string& why);
  // Reads the file again, merges the results of add() into it and replaces it atomically. Returns false if that failed;
  // the results then wait for the next save(). Returns true if there is nothing to write.
  bool save();

private:
  struct choice {
    std::string algorithm, why;
  };
  using choices = std::map<std::string, choice>;
  choices read() const;

  std::string heading_;
  std::filesystem::path file_;
  choices known_, added_;
};

} // namespace plugins

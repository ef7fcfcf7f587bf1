// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace plugins {

// What timing has picked before, so that it need not be timed again: a text file, one "key, algorithm, why" a line with
// tabs between. It may be deleted at any time. A file that is not ours is ignored, and so are lines that are not of this
// form; where nothing can be read or written, picks are only timed again.
class pick_cache {
public:
  // Of the plugin `owner`. An empty path: remembers nothing.
  pick_cache(std::string owner, std::filesystem::path file);
  // $XDG_CACHE_HOME/regatta/OWNER-picks, or ~/.cache/regatta/OWNER-picks; empty where neither is known.
  static std::filesystem::path usual_file(const std::string& owner);

  const std::filesystem::path& file() const { return file_; }
  // The algorithm for a key, or null.
  const std::string* find(const std::string& key) const;
  void add(const std::string& key, const std::string& algorithm, const std::string& why);
  // Adds what is new to what the file holds by now, and puts the whole in its place at once. False where it could not.
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

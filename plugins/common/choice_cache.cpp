// SPDX-License-Identifier: Apache-2.0
#include "choice_cache.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace plugins {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t most_bytes = std::uintmax_t{8} << 20; // about 50,000 lines; a larger file is not a cache

} // namespace

fs::path choice_cache::usual_file(const std::string& owner) {
  const fs::path name = owner + "-choices";
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && fs::path(cache).is_absolute()) return fs::path(cache) / "regatta" / name;
  const char* home = std::getenv("HOME");
  return home && fs::path(home).is_absolute() ? fs::path(home) / ".cache" / "regatta" / name : fs::path();
}

choice_cache::choice_cache(std::string owner, fs::path file)
    : heading_("regatta " + std::move(owner) + " choices, format 1; may be deleted"), file_(std::move(file)),
      known_(read()) {}

choice_cache::choices choice_cache::read() const {
  choices found;
  std::error_code error;
  if (file_.empty() || !fs::is_regular_file(file_, error) || fs::file_size(file_, error) > most_bytes) return found;
  std::ifstream in(file_, std::ios::binary);
  std::string line;
  if (!std::getline(in, line) || line != heading_) return found;
  while (std::getline(in, line)) {
    if (in.eof()) break; // no newline: the line is truncated
    const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    found[line.substr(0, first)] = {line.substr(first + 1, second - first - 1), line.substr(second + 1)};
  }
  return found;
}

const std::string* choice_cache::find(const std::string& key) const {
  const auto at = known_.find(key);
  return at == known_.end() ? nullptr : &at->second.algorithm;
}

void choice_cache::add(const std::string& key, const std::string& algorithm, const std::string& why) {
  known_[key] = added_[key] = {algorithm, why};
}

bool choice_cache::save() {
  if (added_.empty() || file_.empty()) return true;
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  choices all = read();
  for (const auto& [key, p] : added_) all[key] = p;
  std::string name = file_.string() + ".XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0) return false;
  close(fd);
  std::ofstream out(name, std::ios::binary);
  out << heading_ << '\n';
  for (const auto& [key, p] : all) out << key << '\t' << p.algorithm << '\t' << p.why << '\n';
  out.close();
  if (out) fs::rename(name, file_, error);
  if (!out || error) {
    fs::remove(name, error);
    return false;
  }
  added_.clear();
  return true;
}

} // namespace plugins

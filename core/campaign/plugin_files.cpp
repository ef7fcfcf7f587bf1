// SPDX-License-Identifier: Apache-2.0
#include "campaign/plugin_files.hpp"

#include "base/failure.hpp"
#include "registry/registry.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

namespace regatta {

plugin_files::plugin_files(const registry& plugins) {
  for (const component& c : plugins.components()) {
    known& k = files_[c.file.string()];
    k.name += fmt::format("{}{} {}", k.name.empty() ? "" : ", ", name_of(c.kind), c.id);
    if (!k.sum.empty()) continue; // another component of the same file
    k.id = identity_of(c.file.string());
    k.sum = sha256_of(c.file);
  }
}

std::map<std::string, std::string> plugin_files::verified(const std::vector<std::string>& files) {
  std::map<std::string, std::string> sums;
  for (const std::string& file : files) {
    known& k = files_.at(file);
    if (const identity now = identity_of(file); now != k.id) {
      if (now == identity{})
        throw failure(exit_code::run, fmt::format("{}: {} was removed since the campaign began", k.name, file));
      if (sha256_of(file) != k.sum)
        throw failure(exit_code::run, fmt::format("{}: {} changed since the campaign began; start another campaign for "
                                                  "the new binary, or put the old one back and add --resume",
                                                  k.name, file));
      k.id = now; // a copy with the same contents
    }
    sums[file] = k.sum;
  }
  return sums;
}

plugin_files::identity plugin_files::identity_of(const std::string& file) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0) return {};
  const auto ns = [](const timespec& t) { return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec; };
  return {s.st_dev, s.st_ino, static_cast<std::uint64_t>(s.st_size), ns(s.st_mtim), ns(s.st_ctim)};
}

} // namespace regatta

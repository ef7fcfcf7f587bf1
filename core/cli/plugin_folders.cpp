// SPDX-License-Identifier: Apache-2.0
#include "cli/plugin_folders.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "registry/registry.hpp"

#include <cstdlib>

#include <fmt/core.h>

namespace regatta {

namespace fs = std::filesystem;

std::vector<fs::path> plugin_folders(const std::vector<std::string>& command_line,
                                     const std::vector<std::string>& experiment) {
  std::vector<fs::path> folders;
  auto ask = [&](std::string_view where, const std::string& folder) {
    std::error_code ec;
    if (!fs::exists(folder, ec))
      throw failure(exit_code::usage, fmt::format("{}: {}: no such folder or file", where, folder));
    folders.push_back(fs::absolute(folder).lexically_normal());
  };
  for (const auto& f : command_line) ask("--plugin-path", f);
  if (const char* path = std::getenv("REGATTA_PLUGIN_PATH"))
    for (const std::string& folder : split(path, ':'))
      if (!folder.empty()) ask("REGATTA_PLUGIN_PATH", folder);
  for (const auto& f : experiment) ask("experiment.plugin_path", f);
  const char *const data = std::getenv("XDG_DATA_HOME"), *const home = std::getenv("HOME");
  const fs::path users = data && *data ? fs::path(data) : fs::path(home ? home : "/nonexistent") / ".local/share";
  std::error_code ec;
  for (const fs::path& folder : {users / "regatta/plugins", built_in_folder(), built_in_folder() / "plugins.d"})
    if (fs::is_directory(folder, ec)) folders.push_back(folder);
  return folders;
}

} // namespace regatta

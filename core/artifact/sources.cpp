// SPDX-License-Identifier: Apache-2.0
#include "artifact/sources.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "report/stored_document.hpp"

#include <algorithm>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_files = 500;
constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;

bool is_source(const fs::path& file) {
  const std::string ending = file.extension();
  return ending == ".c" || ending == ".cpp" || ending == ".cc" || ending == ".cxx";
}

// Returns the value of an entry of CMakeCache.txt, "NAME:TYPE=VALUE"; empty: it has none.
std::string cached(const fs::path& cache, const std::string& name) {
  std::ifstream in(cache);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":")) return line.substr(std::min(line.find('=') + 1, line.size()));
  return "";
}

void add_file(std::vector<archived_file>& to, const fs::path& file, const std::string& name) {
  const auto content = content_of(file);
  if (!content) throw failure(exit_code::usage, fmt::format("{}: cannot be read", file.string()));
  to.push_back({name, *content});
}

// Adds the files below `folder`, in any order.
void add_folder(std::vector<archived_file>& to, const fs::path& folder, const std::string& prefix) {
  std::error_code error;
  std::uint64_t bytes = 0;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path& file = at->path();
    std::error_code ignored;
    const bool is_folder = at->is_directory(ignored) && !at->is_symlink(ignored);
    if (file.filename().string().starts_with('.') || (is_folder && fs::exists(file / "CMakeCache.txt", ignored))) {
      if (is_folder) at.disable_recursion_pending();
      continue;
    }
    if (is_folder || at->is_symlink(ignored) || !at->is_regular_file(ignored)) continue;
    bytes += at->file_size(ignored);
    if (to.size() == most_files || bytes > most_bytes)
      throw failure(exit_code::usage, fmt::format("{}: expected the sources of a plugin, got more than {} files or {} "
                                                  "MiB; name their folder with --sources",
                                                  folder.string(), most_files, most_bytes >> 20));
    add_file(to, file, prefix + file.lexically_relative(folder).generic_string());
  }
  if (error) throw failure(exit_code::usage, fmt::format("{}: {}", folder.string(), error.message()));
}

// Returns a build file as docs/writing-a-plugin.md shows one.
std::string build_file(const std::string& name, const std::vector<archived_file>& files, const std::string& prefix) {
  std::string sources;
  for (const archived_file& f : files)
    if (is_source(f.name)) sources += " " + f.name.substr(prefix.size());
  return fmt::format(
      "# Written by regatta artifact.\ncmake_minimum_required(VERSION 3.25)\nproject({0} LANGUAGES C CXX)"
      "\nfind_package(regatta REQUIRED)\nregatta_add_plugin({0}{1})\n",
      name, sources);
}

} // namespace

std::optional<fs::path> sources_of(const fs::path& plugin) {
  std::error_code error;
  fs::path folder = plugin.parent_path();
  for (int level = 0; level < 3; ++level, folder = folder.parent_path())
    if (const std::string source = cached(folder / "CMakeCache.txt", "CMAKE_HOME_DIRECTORY"); !source.empty())
      return fs::is_directory(source, error) ? std::optional<fs::path>(source) : std::nullopt;
  for (const char* ending : {".cpp", ".c"})
    if (fs::path file = fs::path(plugin).replace_extension(ending); fs::is_regular_file(file, error)) return file;
  return std::nullopt;
}

std::string source_name(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  std::string name = (whole.has_filename() ? whole : whole.parent_path()).stem().string();
  // A name of a target of CMake.
  for (char& c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) c = '_';
  return name.empty() ? "plugin" : name.substr(0, 64);
}

std::vector<archived_file> source_files(const fs::path& path) {
  const std::string name = source_name(path), prefix = "sources/" + name + "/";
  std::vector<archived_file> files;
  std::error_code error;
  if (fs::is_directory(path, error))
    add_folder(files, path, prefix);
  else if (fs::is_regular_file(path, error))
    add_file(files, path, prefix + path.filename().string());
  else
    throw failure(exit_code::usage,
                  fmt::format("{}: expected a folder or a file with the sources of a plugin", one_line(path.string())));
  std::ranges::sort(files, {}, &archived_file::name);
  if (std::ranges::none_of(files, [&](const archived_file& f) { return f.name == prefix + "CMakeLists.txt"; }))
    files.push_back({prefix + "CMakeLists.txt", build_file(name, files, prefix)});
  return files;
}

} // namespace regatta

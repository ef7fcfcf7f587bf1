// SPDX-License-Identifier: Apache-2.0
#include "data/text_file.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <system_error>

#include <fmt/core.h>

namespace regatta {
namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  auto files = sorted_entries(path, [](const std::filesystem::directory_entry& e) {
    const std::string name = e.path().filename().string(), extension = e.path().extension().string();
    std::error_code unreadable; // such as a loop of links
    return e.is_regular_file(unreadable) && name[0] != '.' && extension != ".vocabulary" && extension != ".subwords";
  });
  if (files.empty()) throw failure(exit_code::usage, fmt::format("{}: holds no file", path.string()));
  return files;
}

} // namespace

text_file::text_file(const std::filesystem::path& path, std::uint64_t first_lines) : path_(path) {
  const std::uint64_t most = first_lines ? first_lines : std::numeric_limits<std::uint64_t>::max();
  for (const auto& name : files_of(path)) {
    mapped_file file(name);
    std::error_code ignored;
    const auto changed = std::filesystem::last_write_time(name, ignored).time_since_epoch().count();
    state_ += fmt::format("{} {} {};", name.filename().string(), file.bytes().size(), changed);
    const char *at = reinterpret_cast<const char*>(file.bytes().data()), *const end = at + file.bytes().size();
    parts_.push_back({starts_.size(), std::move(file)});
    while (at != end && starts_.size() < most) {
      starts_.push_back(at);
      const void* newline = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
      at = newline ? static_cast<const char*>(newline) + 1 : end;
    }
  }
}

const text_file::part& text_file::holder(std::uint64_t line) const noexcept {
  return *(std::ranges::upper_bound(parts_, line, {}, &part::first) - 1);
}

std::string_view text_file::line(std::uint64_t i) const noexcept {
  const auto bytes = holder(i).file.bytes();
  const char *const begin = starts_[i], *const end = reinterpret_cast<const char*>(bytes.data()) + bytes.size();
  const void* newline = std::memchr(begin, '\n', static_cast<std::size_t>(end - begin));
  std::string_view text(begin, static_cast<std::size_t>((newline ? static_cast<const char*>(newline) : end) - begin));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

std::string text_file::position(std::uint64_t i) const {
  const part& p = holder(i);
  return fmt::format("{}:{}", p.file.name(), i - p.first + 1);
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "files/archive.hpp"

#include "base/descriptor.hpp"
#include "base/failure.hpp"
#include "base/text.hpp"
#include "files/gzip.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block = 512, longest_name = 255;

// Offsets and lengths of the fields of a header.
struct tar_field {
  std::size_t at, length;
};
constexpr tar_field name_field{0, 100}, mode_field{100, 8}, user_field{108, 8}, group_field{116, 8},
    size_field{124, 12}, time_field{136, 12}, sum_field{148, 8}, type_field{156, 1}, magic_field{257, 6},
    version_field{263, 2}, prefix_field{345, 155};

failure refused(const std::string& why) {
  return failure(exit_code::usage, why);
}

std::size_t padded(std::size_t size) {
  return (size + block - 1) / block * block;
}

// Returns the sum of the header's bytes, with blanks in place of the sum itself.
std::uint64_t sum_of(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < header.size(); ++i) {
    const bool in_sum = i >= sum_field.at && i < sum_field.at + sum_field.length;
    sum += in_sum ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

void put(std::string& header, tar_field f, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(f.at));
}

void put_number(std::string& header, tar_field f, std::uint64_t number) {
  put(header, f, fmt::format("{:0{}o}", number, f.length - 1));
}

// Returns the name as prefix and name of a header, divided at a '/'; std::nullopt if no division fits.
std::optional<std::pair<std::string, std::string>> divided(const std::string& name) {
  if (name.size() <= name_field.length) return std::pair(std::string(), name);
  for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
    if (at <= prefix_field.length && name.size() - at - 1 <= name_field.length)
      return std::pair(name.substr(0, at), name.substr(at + 1));
  return std::nullopt;
}

std::string header_of(const archived_file& file) {
  const auto parts = divided(file.name);
  if (!parts) throw refused(fmt::format("{}: the name is too long for an archive", one_line(file.name)));
  std::string header(block, '\0');
  put(header, name_field, parts->second);
  put(header, prefix_field, parts->first);
  put_number(header, mode_field, 0644);
  put_number(header, user_field, 0);
  put_number(header, group_field, 0);
  put_number(header, size_field, file.content.size());
  put_number(header, time_field, 0);
  put(header, type_field, "0");
  put(header, magic_field, std::string_view("ustar\0", 6));
  put(header, version_field, "00");
  put(header, sum_field, fmt::format("{:06o}", sum_of(header)) + std::string("\0 ", 2));
  return header;
}

std::string text_in(std::string_view header, tar_field f) {
  const std::string_view whole = header.substr(f.at, f.length);
  return std::string(whole.substr(0, whole.find('\0')));
}

// Returns an octal number, which blanks may surround; std::nullopt if the field holds anything else.
std::optional<std::uint64_t> number_in(std::string_view header, tar_field f) {
  const std::string text = one_line(text_in(header, f));
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') return std::nullopt;
    number = number * 8 + static_cast<std::uint64_t>(c - '0'); // at most 11 digits
  }
  return text.empty() ? std::nullopt : std::optional(number);
}

// Returns the first file that is also the folder of another; empty: there is none.
std::string file_and_folder(const std::set<std::string>& names) {
  for (const std::string& name : names)
    for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
      if (names.contains(name.substr(0, at))) return name.substr(0, at);
  return "";
}

void check_names(const std::vector<archived_file>& files) {
  std::set<std::string> names;
  for (const archived_file& file : files) {
    if (!is_archive_name(file.name))
      throw refused(fmt::format("expected names of files below the archive's folder, got \"{}\"",
                                one_line(file.name.substr(0, longest_name))));
    if (!names.insert(file.name).second)
      throw refused(fmt::format("expected each file once, got {} twice", one_line(file.name)));
  }
  if (const std::string both = file_and_folder(names); !both.empty())
    throw refused(fmt::format("{} is a file, and the folder of another", one_line(both)));
}

[[noreturn]] void cannot_write(const fs::path& file, int error) {
  throw failure(exit_code::run, fmt::format("{}: {}", file.string(), std::generic_category().message(error)));
}

void write_new(const fs::path& file, std::string_view content) {
  const unique_fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (fd.get() < 0) cannot_write(file, errno);
  if (!write_all(fd.get(), content)) cannot_write(file, errno);
}

} // namespace

bool is_archive_name(std::string_view name) {
  if (name.empty() || name.size() > longest_name || cleaned(name) != name) return false;
  if (name.find('\\') != std::string_view::npos) return false;
  const std::vector<std::string> parts = split(name, '/'); // an absolute path has an empty part
  return std::ranges::none_of(parts, [](const std::string& p) { return p.empty() || p == "." || p == ".."; });
}

std::string write_archive(std::vector<archived_file> files) {
  check_names(files);
  std::uint64_t bytes = 0;
  for (const archived_file& file : files) bytes += file.content.size();
  if (bytes > most_archived_bytes || files.size() > most_archived_files)
    throw refused(fmt::format("expected at most {} MiB in {} files, got {} MiB in {}", most_archived_bytes >> 20,
                              most_archived_files, (bytes >> 20) + 1, files.size()));
  std::ranges::sort(files, {}, &archived_file::name);
  gzip_writer out;
  const std::string zeros(2 * block, '\0');
  for (const archived_file& file : files) {
    out.add(header_of(file));
    out.add(file.content);
    out.add(std::string_view(zeros).substr(0, padded(file.content.size()) - file.content.size()));
  }
  out.add(zeros); // the end: two blocks of zeros
  return out.finish();
}

std::vector<archived_file> read_archive(std::string_view bytes) {
  // Headers and padding are at most three blocks a file, folders included.
  return read_tar(gunzip(bytes, most_archived_bytes + 3 * block * most_archived_files));
}

std::vector<archived_file> read_tar(std::string_view tar) {
  std::vector<archived_file> files;
  std::size_t at = 0, entries = 0;
  for (;; ++entries) {
    if (tar.size() - at < block) throw refused("expected a whole archive, got one that ends within a file");
    const std::string_view header = tar.substr(at, block);
    at += block;
    if (header.find_first_not_of('\0') == std::string_view::npos) break;
    if (entries == most_archived_files) throw refused(fmt::format("it holds more than {} files", most_archived_files));
    const auto sum = number_in(header, sum_field), size = number_in(header, size_field);
    if (text_in(header, magic_field) != "ustar" || sum != sum_of(header) || !size)
      throw refused("expected an archive of the form ustar with correct checksums (tar --format=ustar), got another");
    const std::string prefix = text_in(header, prefix_field);
    std::string name = (prefix.empty() ? "" : prefix + "/") + text_in(header, name_field);
    const char type = header[type_field.at];
    if (type == '5' && *size == 0) continue; // a folder: made where a file needs it
    if (type != '0' && type != '\0')
      throw refused(fmt::format("expected plain files, got an entry of type '{}': {}", one_line(std::string(1, type)),
                                one_line(name)));
    if (*size > tar.size() - at) throw refused("expected a whole archive, got one that ends within a file");
    files.push_back({std::move(name), std::string(tar.substr(at, *size))});
    at = std::min(at + padded(*size), tar.size());
  }
  check_names(files);
  return files;
}

void unpack_archive(const std::vector<archived_file>& files, const fs::path& folder) {
  for (const archived_file& file : files) {
    const fs::path to = folder / file.name;
    std::error_code error;
    fs::create_directories(to.parent_path(), error);
    if (error) throw failure(exit_code::run, fmt::format("{}: {}", to.parent_path().string(), error.message()));
    write_new(to, file.content);
  }
}

} // namespace regatta

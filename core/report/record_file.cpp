// SPDX-License-Identifier: Apache-2.0
#include "report/record_file.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "files/write_atomically.hpp"
#include "registry/sha256.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta {
namespace {

std::string sha256_of_text(std::string_view text) {
  sha256 sum;
  sum.add(text);
  return sum.hex();
}

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view before_sum = R"({"sha256":")", after_sum = R"(","record":)", line_end = "}\n";
constexpr std::size_t sum_digits = 64;

// Throws failure if append() did not write the line.
json record_of(std::string_view line) {
  constexpr std::size_t frame = before_sum.size() + sum_digits + after_sum.size();
  const std::string_view end = line_end.substr(0, 1);
  if (line.size() < frame + end.size() || !line.starts_with(before_sum) || !line.ends_with(end) ||
      line.substr(before_sum.size() + sum_digits, after_sum.size()) != after_sum)
    throw failure(exit_code::usage, "no record");
  const std::string_view text = line.substr(frame, line.size() - frame - end.size());
  if (line.substr(before_sum.size(), sum_digits) != sha256_of_text(text))
    throw failure(exit_code::usage, "the checksum differs");
  return parse_json(text);
}

[[noreturn]] void cannot(const char* what, const fs::path& path) {
  throw failure(exit_code::run, fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno)));
}

} // namespace

record_file::record_file(const fs::path& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  struct stat s {};
  if (fd_ < 0 || ::fstat(fd_, &s) != 0) cannot("open", path);
  size_ = static_cast<std::uint64_t>(s.st_size);
  sync_folder_of(path);
}

record_file::~record_file() {
  if (fd_ >= 0) ::close(fd_);
}

std::vector<std::string> record_file::read(const std::function<void(json&&)>& take) {
  std::vector<std::string> ignored;
  std::ifstream in(path_, std::ios::binary);
  if (!in) cannot("read", path_); // otherwise all records would be cut off below
  std::uint64_t whole = 0, number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (in.eof()) { // no newline: program or machine stopped during a write
      ignored.push_back(fmt::format("{}:{}: the last record is incomplete; it is ignored", path_.string(), number));
      break;
    }
    whole += line.size() + 1;
    try {
      take(record_of(line));
    } catch (const std::exception& e) {
      ignored.push_back(fmt::format(
          "{}:{}: this record is damaged ({}); it is ignored, and runs that are missing without it run again",
          path_.string(), number, one_line(e.what())));
    }
  }
  if (in.bad()) cannot("read", path_);
  size_ = whole;
  if (::ftruncate(fd_, static_cast<off_t>(size_)) != 0) cannot("write", path_);
  return ignored;
}

void record_file::append(const json& record) {
  const std::string text = record.dump(-1, ' ', false, json::error_handler_t::replace);
  pending_ += fmt::format("{}{}{}{}{}", before_sum, sha256_of_text(text), after_sum, text, line_end);
}

void record_file::write() {
  if (!is_open_at(fd_, path_)) make_again();
  if (pending_.empty()) return;
  for (std::size_t done = 0; done < pending_.size();) {
    const ssize_t n = ::pwrite(fd_, pending_.data() + done, pending_.size() - done, static_cast<off_t>(size_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int why = errno;
      (void)!::ftruncate(fd_, static_cast<off_t>(size_)); // no part of a record must remain
      errno = why;
      cannot("write", path_);
    }
    done += static_cast<std::size_t>(n);
  }
  if (::fsync(fd_) != 0) cannot("write", path_);
  size_ += pending_.size();
  pending_.clear();
}

// A removed file can still be read through its descriptor.
void record_file::make_again() {
  std::string text(size_, '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::pread(fd_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) cannot("read", path_);
    done += static_cast<std::size_t>(n);
  }
  write_atomically(path_, text);
  const int fd = ::open(path_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) cannot("open", path_);
  ::close(std::exchange(fd_, fd));
}

} // namespace regatta

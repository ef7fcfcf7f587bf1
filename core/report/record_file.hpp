// SPDX-License-Identifier: Apache-2.0
//
// A file to which JSON records are appended. A record is a line with a checksum, which reveals records that a crash cut
// short or that were damaged later. One thread at a time.
//
//   {"sha256":"<64 hexadecimal digits of the record's text>","record":<the record>}
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

class record_file {
public:
  // Opens or creates the file. Throws failure (run) if that is impossible, or if it is a symbolic link. Requires that
  // no other process writes it.
  explicit record_file(const std::filesystem::path& path);
  ~record_file();
  record_file(const record_file&) = delete;
  record_file& operator=(const record_file&) = delete;

  // Passes every intact record to `take`, in order, and truncates the file before a last line without its end. A record
  // for which `take` throws a std::exception counts as damaged; damaged records stay in the file. Returns a sentence
  // for each record that is ignored. Throws failure (run) if the file cannot be read or truncated. Call it before the
  // first append().
  std::vector<std::string> read(const std::function<void(nlohmann::json&&)>& take);

  // Queues a record in memory for write().
  void append(const nlohmann::json& record);
  // Writes the queued records and calls fsync. Throws failure (run) if that is impossible; all records that were queued
  // then stay queued. If the file was removed or replaced, first recreates it with its earlier records.
  void write();

private:
  void make_again();

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0; // of the complete records in the file
  std::string pending_;    // lines that are not written yet
};

} // namespace regatta

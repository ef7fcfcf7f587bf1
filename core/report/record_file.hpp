// SPDX-License-Identifier: Apache-2.0
//
// A file of JSON records that only grows. A record is a line with a checksum, so that a record that a crash tore or
// that was damaged later is recognised:
//
//   {"sha256":"<64 hexadecimal digits>","record":<the record, whose text the checksum is of>}
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
  // Opens the file, or makes it. Throws failure (run). Requires that no other process writes it.
  explicit record_file(const std::filesystem::path& path);
  ~record_file();
  record_file(const record_file&) = delete;
  record_file& operator=(const record_file&) = delete;

  // Passes every intact record to `take`, in order, and cuts off a last line without its end. A record for which `take`
  // throws failure or a JSON exception counts as damaged. Returns a sentence for each record that is ignored. Call it
  // before the first append.
  std::vector<std::string> read(const std::function<void(nlohmann::json&&)>& take);

  // Adds a record to those that write() has to bring to the disk.
  void append(const nlohmann::json& record);
  // Writes what was appended, and fsyncs. Throws failure (run); what was not written stays for the next call. A file
  // that was removed is made again with all its records.
  void write();

private:
  bool is_in_place() const;
  void make_again();

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0; // of what is written whole
  std::string pending_;    // lines that are not written yet
};

} // namespace regatta

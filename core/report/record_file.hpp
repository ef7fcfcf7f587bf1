// SPDX-License-Identifier: Apache-2.0
//
// A file of JSON records that only grows. A record is a line with a checksum, which reveals records that a crash cut
// short or that were damaged later:
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
  // Opens or creates the file. Throws failure (run). Requires that no other process writes it.
  explicit record_file(const std::filesystem::path& path);
  ~record_file();
  record_file(const record_file&) = delete;
  record_file& operator=(const record_file&) = delete;

  // Passes every intact record to `take`, in order, and removes a last line without its end. A record for which `take`
  // throws failure or a JSON exception counts as damaged. Returns a sentence for each record that is ignored. Call it
  // before the first append().
  std::vector<std::string> read(const std::function<void(nlohmann::json&&)>& take);

  // Queues a record for write().
  void append(const nlohmann::json& record);
  // Writes the queued records and calls fsync. Throws failure (run); records that were not written stay queued.
  // Recreates the file with all its records if it was removed.
  void write();

private:
  bool is_in_place() const;
  void make_again();

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0; // of the complete records in the file
  std::string pending_;    // lines that are not written yet
};

} // namespace regatta

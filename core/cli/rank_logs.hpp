// SPDX-License-Identifier: Apache-2.0
//
// Log files of ranks beside the result: one file for each run and rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace regatta {

// [main]
class rank_logs {
public:
  // Creates no folder and no file before the first line.
  explicit rank_logs(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Later lines belong to this run: with "case-1-repeat-2", lines of rank 0 go to FOLDER/case-1-repeat-2-rank-0.log.
  // Call it before add().
  void begin(const std::string& run);
  // Appends a line with the time and the level (RG_LOG_*), without characters that control a terminal, and writes it at
  // once. At 16 MiB a last line in the file says that it is full; later lines are dropped. Returns a warning the first
  // time that a line cannot be written, else nullopt; does not throw for errors of files.
  std::optional<std::string> add(std::uint32_t rank, int level, const std::string& text);
  // Returns the path of a rank's file of this run; "" if no line of the rank was written.
  std::string file(std::uint32_t rank) const;

private:
  struct written {
    std::string file;
    std::uint64_t bytes = 0;
  };
  std::filesystem::path folder_;
  std::string run_;
  std::map<std::uint32_t, written> ranks_; // of the current run
  bool failed_ = false;
};

// Returns RG_LOG_* for "error", "warning", "info" or "debug"; nullopt for other names.
std::optional<int> log_level_named(const std::string& name);

} // namespace regatta

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

class rank_logs {
public:
  // Creates no folder and no file before the first line.
  explicit rank_logs(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Later lines belong to this run: "case-1-repeat-2" becomes FOLDER/case-1-repeat-2-rank-0.log.
  void begin(const std::string& run);
  // Appends a line, without characters that control a terminal. `level` is one of RG_LOG_*. Drops lines after the first
  // 16 MiB of a file. Returns a warning the first time that a line cannot be written; never throws.
  std::optional<std::string> add(std::uint32_t rank, int level, const std::string& text);
  // Returns the file of a rank in this run; empty if the rank has written nothing.
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

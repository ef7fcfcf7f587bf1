// SPDX-License-Identifier: Apache-2.0
//
// Lines that ranks write and log: of every run a file a rank, beside the result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace regatta {

class rank_logs {
public:
  // Neither the folder nor a file is made before there is a line.
  explicit rank_logs(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Later lines belong to this run: "case-1-repeat-2" becomes FOLDER/case-1-repeat-2-rank-0.log.
  void begin(const std::string& run);
  // Appends a line, cleaned of what a terminal obeys. `level` as RG_LOG_*. Of each file the first 16 MiB are kept.
  // Returns a warning the first time that a line cannot be written; never throws.
  std::optional<std::string> add(std::uint32_t rank, int level, const std::string& text);
  // The file of this run's rank; empty where it wrote nothing.
  std::string file(std::uint32_t rank) const;

private:
  struct written {
    std::string file;
    std::uint64_t bytes = 0;
  };
  std::filesystem::path folder_;
  std::string run_;
  std::map<std::uint32_t, written> ranks_; // of this run
  bool failed_ = false;
};

// RG_LOG_* of "error", "warning", "info" or "debug"; nothing for other names.
std::optional<int> log_level_named(const std::string& name);

} // namespace regatta

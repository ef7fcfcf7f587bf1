// SPDX-License-Identifier: Apache-2.0
//
// result.json of an output folder: replaced atomically after every case, so that whatever ends a campaign, what it
// finished is kept.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Replaces `file` by `text`: a reader sees the old or the new whole, after a crash too. Throws failure (exit code run).
void write_atomically(const std::filesystem::path& file, const std::string& text);

// Reads a result and checks that it is one: schema "regatta.result/1", a context, entries with case and status. Throws
// failure (exit code usage), naming the file and what is wrong with it.
nlohmann::json load_result(const std::filesystem::path& file);

// Why a campaign begun under `before` cannot be resumed under `now`: experiment, plugin binaries and hosts must be the
// same. Empty: it can.
std::string resume_conflict(const nlohmann::json& before, const nlohmann::json& now);

class result_file {
public:
  // `cases`: the "case" member (swept keys and values) of every case, in order. Makes the folder where it is missing. A
  // folder that holds a result.json is refused unless `resume`; then its entries that are "ok" and still asked for are
  // taken over. Throws failure (exit code usage).
  result_file(const std::filesystem::path& folder, nlohmann::json context, const std::vector<nlohmann::json>& cases,
              bool resume);

  // By case; null where there is none. After resuming: what need not run again.
  const std::vector<nlohmann::json>& entries() const { return entries_; }
  // Replaces all entries, one a case, and writes the file.
  void store(std::vector<nlohmann::json> entries);

  // {schema, context, results}, entries in the order of the cases.
  nlohmann::json document() const;
  const std::filesystem::path& path() const { return path_; } // of result.json

private:
  std::filesystem::path path_;
  nlohmann::json context_;
  std::vector<nlohmann::json> entries_; // by case; null: none yet
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The folder of one campaign: the resolved experiments, records.jsonl with every finished run, and result.json, which
// the caller computes from the records. The constructor makes records.jsonl if it is missing; only write() writes
// contents, the other functions queue. Files that write() has written survive any end of the program. Output that
// cannot be written (full disk, removed folder) stays queued for the next write().
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/folder_lock.hpp"
#include "report/record_file.hpp"

namespace regatta {

class result_folder {
public:
  // Makes a new folder: `wanted`, or if it exists `wanted`-2, `wanted`-3 and so on. Makes missing parents. Returns its
  // path. Throws failure (usage) if the parents cannot be made, failure (run) if the folder cannot.
  static std::filesystem::path make_new(const std::filesystem::path& wanted);

  // Makes the folder if it is missing, and locks it for this process until the object is destroyed. Throws failure
  // (usage) if the folder cannot be made or listed, if another process has locked it, if it holds a campaign and
  // `resume` is false, or if it holds result.json without records.jsonl; failure (run) if locking or opening
  // records.jsonl is impossible. With `resume`, removes temporary files that a killed process left.
  result_folder(const std::filesystem::path& folder, bool resume);

  // Passes each intact record of records.jsonl to `take`, in order; a new campaign has none. Ignores damaged records,
  // those that are cut short, have a wrong checksum, or make `take` throw; returns a sentence for each. Removes a last
  // record without its end from the file. Throws failure (run) if the file cannot be read or truncated. Call it before
  // the first append().
  std::vector<std::string> read(const std::function<void(nlohmann::json&&)>& take) { return records_->read(take); }

  // Adds or replaces the file `name` in the folder. write() writes it, and writes it again if the folder was removed.
  void add_file(const std::string& name, const std::string& text);
  // Queues a record, which write() appends to records.jsonl.
  void append(const nlohmann::json& record) { records_->append(record); }
  // Replaces the contents of result.json, as add_file() does.
  void set_result(const nlohmann::json& document);

  // Writes everything that is not on the disk yet. Makes and locks the folder again if it was removed. Returns why
  // something could not be written (the first reason), or an empty string. The next call tries again.
  std::string write();

  std::filesystem::path result() const { return folder_ / "result.json"; }
  std::filesystem::path records() const { return folder_ / "records.jsonl"; }
  const std::filesystem::path& path() const { return folder_; }

private:
  struct file {
    std::string text;
    bool written = false;
  };
  void refuse_or_clean(bool resume) const;
  void take_again();

  std::filesystem::path folder_;
  std::unique_ptr<folder_lock> lock_;
  std::unique_ptr<record_file> records_;
  std::map<std::string, file> files_; // by name, including result.json
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The folder of one campaign: the resolved experiments, records.jsonl with every finished run, and result.json, which
// is computed from the records. Files that were written survive any end of the program. Output that cannot be written
// now (full disk, removed folder) is kept in memory and written later.
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
  // Makes a new folder: `wanted`, or if it exists `wanted`-2, `wanted`-3 and so on. Returns its path. Throws failure
  // (run).
  static std::filesystem::path make_new(const std::filesystem::path& wanted);

  // Locks the folder for this process until the object is destroyed, and makes it if it is missing. Throws failure
  // (usage) if another process writes it, if it holds a campaign and `resume` is false, or if it holds results whose
  // records are missing. With `resume`, removes temporary files that a killed process left.
  result_folder(const std::filesystem::path& folder, bool resume);

  // Reads the records of the campaign that is resumed; see record_file::read(). Call it before the first append().
  std::vector<std::string> read(const std::function<void(nlohmann::json&&)>& take) { return records_->read(take); }

  // Adds a file beside the results. write() writes it, and writes it again if the folder was removed.
  void add_file(const std::string& name, const std::string& text);
  void append(const nlohmann::json& record) { records_->append(record); }
  void set_result(const nlohmann::json& document);

  // Writes everything that is not on the disk yet. Returns why something could not be written, or an empty string. The
  // next call tries again.
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

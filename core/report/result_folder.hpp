// SPDX-License-Identifier: Apache-2.0
//
// The folder of one campaign: the resolved experiments, records.jsonl with every finished run, and result.json, which
// is made of the records. Whatever ends the program, what is written stays; what cannot be written now (a full disk, a
// folder that was removed) is kept and written later.
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
  // Makes a new folder: `wanted`, or where that exists `wanted`-2, `wanted`-3 and so on. Returns its path. Throws
  // failure (run).
  static std::filesystem::path make_new(const std::filesystem::path& wanted);

  // Takes the folder, which is made where it is missing, for this process until the object is destroyed. Throws failure
  // (usage) where another process writes it, where it holds a campaign and `resume` is not set, and where it holds
  // results whose records are gone. With `resume`, removes temporary files that a killed process left.
  result_folder(const std::filesystem::path& folder, bool resume);

  // The records of the campaign that is resumed; see record_file::read(). To be called before the first append().
  std::vector<std::string> read(const std::function<void(nlohmann::json&&)>& take) { return records_->read(take); }

  // A file beside the results. Written by write(), and again if the folder was removed.
  void add_file(const std::string& name, const std::string& text);
  void append(const nlohmann::json& record) { records_->append(record); }
  void set_result(const nlohmann::json& document);

  // Brings to the disk what is not there yet. Returns why something could not be written, or an empty string. The next
  // call tries it again.
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
  std::map<std::string, file> files_; // by name; result.json among them
};

} // namespace regatta

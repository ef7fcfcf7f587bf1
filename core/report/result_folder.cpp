// SPDX-License-Identifier: Apache-2.0
#include "report/result_folder.hpp"

#include "base/failure.hpp"
#include "files/write_atomically.hpp"

#include <system_error>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char *result_name = "result.json", *records_name = "records.jsonl";

bool belongs_to_campaign(const std::string& name) {
  return name == result_name || name == records_name || name == "as-written.toml" ||
         (name.starts_with("resolved") && name.ends_with(".toml"));
}

// A temporary file that a killed process left, such as "result.json.0123456789abcdef.tmp".
bool is_ours_left_over(const std::string& name) {
  const std::size_t hash = name.rfind('.', name.size() < 5 ? 0 : name.size() - 5);
  if (hash == std::string::npos) return false;
  const std::string file = name.substr(0, hash);
  return belongs_to_campaign(file) && is_leftover(name, file);
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw failure(exit_code::usage, fmt::format("{}: {}", path.string(), why));
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw failure(exit_code::usage, fmt::format("{}: cannot make this folder: {}", folder.string(), error.message()));
}

} // namespace

fs::path result_folder::make_new(const fs::path& wanted) {
  if (wanted.has_parent_path()) make_folders(wanted.parent_path());
  for (int number = 1;; ++number) {
    fs::path folder = number == 1 ? wanted : fs::path(fmt::format("{}-{}", wanted.string(), number));
    std::error_code error;
    if (fs::create_directory(folder, error)) return folder; // false without an error: another process has made it
    if (error && error != std::errc::file_exists)
      throw failure(exit_code::run, fmt::format("{}: cannot make this folder: {}", folder.string(), error.message()));
  }
}

result_folder::result_folder(const fs::path& folder, bool resume) : folder_(folder) {
  make_folders(folder);
  lock_ = std::make_unique<folder_lock>(folder); // lock before reading: another process may be writing
  refuse_or_clean(resume);
  records_ = std::make_unique<record_file>(folder / records_name);
}

void result_folder::refuse_or_clean(bool resume) const {
  std::error_code error;
  for (fs::directory_iterator i(folder_, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    if (!resume && belongs_to_campaign(name))
      refuse(i->path(), "this folder already holds a campaign; choose another with --out, or add --resume");
    if (resume && is_ours_left_over(name)) {
      std::error_code ignored;
      fs::remove(i->path(), ignored);
    }
  }
  if (error) refuse(folder_, fmt::format("cannot list this folder: {}", error.message()));
  if (fs::exists(result()) && !fs::exists(folder_ / records_name))
    refuse(folder_ / records_name,
           "this file is missing, and --resume goes on from its records; choose another folder with --out");
}

void result_folder::add_file(const std::string& name, const std::string& text) {
  files_[name] = {text, false};
}

void result_folder::set_result(const json& document) {
  add_file(result_name, document.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

std::string result_folder::write() {
  std::string problem;
  const auto attempt = [&](auto f) {
    try {
      f();
    } catch (const std::exception& e) {
      if (problem.empty()) problem = e.what();
    }
  };
  if (!lock_->holds()) attempt([&] { take_again(); });
  if (!problem.empty()) return problem; // another process may write in the folder
  attempt([&] { records_->write(); });
  for (auto& [name, f] : files_)
    if (!f.written)
      attempt([&, &to = f, &in = name] {
        write_atomically(folder_ / in, to.text);
        to.written = true;
      });
  return problem;
}

// Called after the folder was removed or emptied.
void result_folder::take_again() {
  make_folders(folder_);
  lock_ = std::make_unique<folder_lock>(folder_);
  for (auto& [name, f] : files_) f.written = false;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "report/result_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/failure.hpp"
#include "base/json.hpp"
#include "report/render.hpp"

namespace regatta {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* schema = "regatta.result/1";

class descriptor {
public:
  descriptor(const fs::path& file, int flags) : fd_(::open(file.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~descriptor() { close(); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  bool open() const { return fd_ >= 0; }
  bool write(const std::string& text) const {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
      if (n < 0 && errno != EINTR) return false;
      if (n > 0) done += static_cast<std::size_t>(n);
    }
    return true;
  }
  bool sync() const { return ::fsync(fd_) == 0; }
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

private:
  int fd_;
};

// What decides whether two campaigns measure the same; dates, commands and how full the memory is do not.
json identity_of_plugins(const json& context) {
  json list = json::array();
  for (const json& plugin : context.value("plugins", json::array()))
    list.push_back({plugin.value("kind", ""), plugin.value("id", ""), plugin.value("sha256", "")});
  std::sort(list.begin(), list.end());
  return list;
}

json identity_of_hosts(const json& context) {
  json list = json::array();
  for (const json& host : context.value("hosts", json::array()))
    list.push_back({host.value("name", json()), host.value("cpu", json()), host.value("cores", json())});
  return list;
}

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw failure(exit_code::usage, fmt::format("{}: {}", file.string(), why));
}

} // namespace

void write_atomically(const fs::path& file, const std::string& text) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  fs::path temporary = file;
  temporary += fmt::format(".{}.tmp", ::getpid());
  const auto give_up = [&](const char* step) {
    const std::string why = std::strerror(errno);
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw failure(exit_code::run, fmt::format("cannot write {}: {}: {}", file.string(), step, why));
  };
  descriptor out(temporary, O_WRONLY | O_CREAT | O_TRUNC);
  if (!out.open()) give_up("open");
  if (!out.write(text)) give_up("write");
  if (!out.sync()) give_up("fsync");
  if (!out.close()) give_up("close");
  if (std::rename(temporary.c_str(), file.c_str()) != 0) give_up("rename");
  // The new name itself lives in the folder.
  const descriptor directory(folder, O_RDONLY | O_DIRECTORY);
  if (directory.open()) directory.sync();
}

json load_result(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse(file, std::strerror(errno));
  json document;
  try {
    document = parse_json(std::string(std::istreambuf_iterator<char>(in), {}));
  } catch (const failure& e) {
    refuse(file, e.what());
  }
  if (!document.is_object() || document.value("schema", json()) != schema)
    refuse(file, fmt::format("expected a result of schema \"{}\"", schema));
  if (!document.contains("context") || !document["context"].is_object()) refuse(file, "\"context\" is missing");
  if (!document.contains("results") || !document["results"].is_array()) refuse(file, "\"results\" is missing");
  for (const json& entry : document["results"])
    if (!entry.is_object() || !entry.contains("case") || !entry["case"].is_object() || !entry.contains("status") ||
        !entry["status"].is_string())
      refuse(file, "an entry of \"results\" has no \"case\" or no \"status\"");
  return document;
}

std::string resume_conflict(const json& before, const json& now) {
  if (before.value("experiment", json()) != now.value("experiment", json())) return "the experiment is another";
  if (before.value("regatta", json()) != now.value("regatta", json()) ||
      before.value("git", json()) != now.value("git", json()) ||
      before.value("build", json()) != now.value("build", json()))
    return "regatta was rebuilt from other sources";
  if (identity_of_plugins(before) != identity_of_plugins(now)) return "the plugins are other binaries";
  if (identity_of_hosts(before) != identity_of_hosts(now)) return "the hosts are others";
  return "";
}

result_file::result_file(const fs::path& folder, json context, const std::vector<json>& cases, bool resume)
    : path_(folder / "result.json"), context_(std::move(context)), entries_(cases.size()) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse(folder, fmt::format("cannot make this folder: {}", error.message()));
  if (!fs::exists(path_)) return;
  if (!resume) refuse(path_, "this folder already holds a result; choose another with --out, or add --resume");
  json before = load_result(path_);
  try {
    if (const std::string why = resume_conflict(before["context"], context_); !why.empty())
      refuse(path_, fmt::format("cannot resume: {}; choose another folder with --out", why));
    // What is kept is shown at the end, after hours perhaps: an entry of which a part is no number has to be found now.
    for (const format f : {format::console, format::csv}) render(before, f);
  } catch (const json::type_error& e) {
    refuse(path_, fmt::format("cannot resume: the file is damaged ({}); choose another folder with --out", e.what()));
  } catch (const json::out_of_range&) {
    // An entry that lacks something: it is shown as far as it goes.
  }
  context_ = before["context"]; // the figures that are there were measured then
  for (json& entry : before["results"])
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (entry["status"] == "ok" && entry["case"] == cases[i]) {
        entries_[i] = std::move(entry);
        break;
      }
}

void result_file::store(std::vector<json> entries) {
  entries_ = std::move(entries);
  write_atomically(path_, document().dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

json result_file::document() const {
  json results = json::array();
  for (const json& entry : entries_)
    if (!entry.is_null()) results.push_back(entry);
  return {{"schema", schema}, {"context", context_}, {"results", std::move(results)}};
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "check/harness/resource_snapshot.hpp"

#include "base/text.hpp"
#include "check/harness/suite.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta::conformance {
namespace {

namespace fs = std::filesystem;

void read_this_process(resource_snapshot& r) {
  std::error_code ec;
  r.threads =
      static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/task", ec), fs::directory_iterator{}));
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", ec)) {
    const std::string target = fs::read_symlink(entry.path(), ec).string();
    // Without the number of a socket or pipe, which differs each time.
    if (!ec && !target.starts_with("/proc/")) r.descriptors.insert(target.substr(0, target.find(":[")));
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, permissions, offset, device, inode, name;
    words >> range >> permissions >> offset >> device >> inode;
    std::getline(words >> std::ws, name);
    if (permissions.size() == 4 && permissions[3] == 's') r.shared.insert(name);
  }
  std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
  for (std::string pid; children >> pid;) r.children.insert("process " + pid);
}

// Lists files and segments of this user. Only new ones are checked for processes that use them (is_used).
void read_machine(resource_snapshot& r) {
  std::error_code ec;
  for (const fs::path& folder : {fs::path("/dev/shm"), fs::temp_directory_path(ec)})
    for (const auto& entry : fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, ec)) {
      struct stat s {};
      if (lstat(entry.path().c_str(), &s) == 0 && s.st_uid == geteuid() && !S_ISDIR(s.st_mode))
        r.segments.insert(entry.path().string());
    }
  std::ifstream sysv("/proc/sysvipc/shm");
  std::string line;
  for (std::getline(sysv, line); std::getline(sysv, line);) {
    std::istringstream words(line);
    std::string key, id, mode, size, creator, last;
    std::uint64_t attached = 0;
    words >> key >> id >> mode >> size >> creator >> last >> attached;
    if (attached == 0) r.segments.insert("System V segment " + id);
  }
}

// Returns true if a running process has the file open or mapped: then it belongs to another program that ran meanwhile.
bool is_used(const std::string& file) {
  std::error_code ec;
  for (const auto& process : fs::directory_iterator("/proc", ec)) {
    const std::string name = process.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    for (const char* folder : {"fd", "map_files"}) {
      std::error_code denied;
      for (const auto& entry : fs::directory_iterator(process.path() / folder, denied))
        if (fs::read_symlink(entry.path(), denied) == file) return true;
    }
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);)
      if (line.ends_with(file)) return true;
  }
  return false;
}

template <class Set> std::vector<std::string> more_than(const Set& now, const Set& before) {
  std::vector<std::string> added;
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(added));
  return added;
}

std::string leaks_since(const resource_snapshot& before) {
  const resource_snapshot after = resource_snapshot::take();
  std::vector<std::string> all;
  if (after.threads > before.threads) all.push_back(fmt::format("{} threads", after.threads - before.threads));
  for (const auto& d : more_than(after.descriptors, before.descriptors)) all.push_back("descriptor of " + d);
  for (const auto& m : more_than(after.shared, before.shared)) all.push_back("shared mapping of " + m);
  for (const auto& c : more_than(after.children, before.children)) all.push_back(c);
  for (const auto& s : more_than(after.segments, before.segments))
    if (!is_used(s) && (s.front() != '/' || fs::exists(fs::symlink_status(s)))) all.push_back(s);
  return join(all);
}

} // namespace

resource_snapshot resource_snapshot::take() {
  resource_snapshot r;
  read_this_process(r);
  read_machine(r);
  return r;
}

void resource_snapshot::expect_no_leaks() const {
  std::string found;
  for (int i = 0; i < 100; ++i) {
    found = leaks_since(*this);
    if (found.empty()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20)); // a thread that was joined may still be listed
  }
  throw failed("leaked: " + found);
}

} // namespace regatta::conformance

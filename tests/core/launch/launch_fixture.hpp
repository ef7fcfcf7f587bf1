// SPDX-License-Identifier: Apache-2.0
//
// Runs of ranks in real processes (test_rank.cpp), and a look at the processes and ports that they leave.
#pragma once

#include "base/failure.hpp"
#include "launch/launch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::test {

using namespace std::chrono_literals;
using nlohmann::json;

// Every process that this test starts, directly or not, carries it in its environment.
inline const std::string token = [] {
  const auto value = fmt::format("launch-test-{}-{}", ::getpid(), std::random_device()());
  ::setenv("REGATTA_TEST_TOKEN", value.c_str(), 1);
  return "REGATTA_TEST_TOKEN=" + value;
}();

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// On its way out a process loses its environment before it closes its sockets, but not its name.
inline bool is_leaving(const std::filesystem::path& process) {
  const auto line = contents(process / "stat"); // PID (NAME) STATE ...
  const auto end = line.rfind(')');
  return line.find("(test_rank)") != std::string::npos && end + 2 < line.size() && line[end + 2] != 'Z' &&
         line[end + 2] != 'X' && contents(process / "environ").empty();
}

inline std::vector<pid_t> processes() {
  std::vector<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == ::getpid()) continue;
    if (contents(entry.path() / "environ").find(token) != std::string::npos || is_leaving(entry.path()))
      out.push_back(std::stoi(name));
  }
  return out;
}

// Waits for the end of every process of the run, half a minute at most: seconds would do, but not where many tests
// share two cores.
inline bool all_gone() {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  for (auto left = processes(); !left.empty(); left = processes()) {
    const auto patience =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (patience <= 0) return false;
    pollfd p{static_cast<int>(::syscall(SYS_pidfd_open, left.front(), 0)), POLLIN, 0};
    if (p.fd < 0) continue;
    ::poll(&p, 1, static_cast<int>(patience));
    ::close(p.fd);
  }
  return true;
}

inline bool no_children() {
  int status = 0;
  return ::waitpid(-1, &status, WNOHANG) == -1 && errno == ECHILD;
}

// Where the processes of the run have their coordinator.
inline std::set<int> ports() {
  std::set<int> out;
  for (const pid_t pid : processes()) {
    const auto line = contents(fmt::format("/proc/{}/cmdline", pid));
    const auto at = line.find("127.0.0.1:");
    if (at != std::string::npos) out.insert(std::stoi(line.substr(at + 10)));
  }
  return out;
}

inline bool is_free(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); // connections that linger do not count
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(static_cast<std::uint16_t>(port));
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool ok = ::bind(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0 && ::listen(fd, 1) == 0;
  ::close(fd);
  return ok;
}

inline json step(const char* what, json more = json::object()) {
  more["do"] = what;
  return more;
}

using steps = std::vector<json>;

inline launch_plan plan_of(const std::vector<steps>& ranks) {
  launch_plan plan;
  plan.program = TEST_RANK;
  plan.limits.silence = plan.limits.start = plan.limits.stopped =
      30s; // sanitizers on a busy machine: what is not about silence must not end by it
  for (std::size_t r = 0; r < ranks.size(); ++r)
    plan.ranks.push_back({fmt::format("worker {}", r), {}, std::make_shared<const json>(json{{"steps", ranks[r]}})});
  return plan;
}

inline launch_plan plan_of(std::size_t ranks, const steps& s) {
  return plan_of(std::vector<steps>(ranks, s));
}

struct observed {
  launch_result result;
  std::vector<std::pair<std::uint32_t, std::string>> lines;

  std::size_t count(const std::string& text) const {
    return static_cast<std::size_t>(std::count_if(
        lines.begin(), lines.end(), [&](const auto& l) { return l.second.find(text) != std::string::npos; }));
  }
  std::string message() const { return result.failure ? result.failure->message : ""; }
};

// Runs to the end; `on_line` sees every line. Whatever the end, nothing is left then.
inline observed run(const launch_plan& plan, const std::function<void(observed&)>& on_line = {}) {
  observed o;
  launch_hooks hooks;
  hooks.log = [&](std::uint32_t rank, int, const std::string& text) {
    o.lines.emplace_back(rank, text);
    if (on_line) on_line(o);
  };
  o.result = launch(plan, hooks);
  CHECK(no_children());
  CHECK(all_gone());
  return o;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class environment {
public:
  explicit environment(const char* mode) { ::setenv("TEST_RANK_MODE", mode, 1); }
  ~environment() { ::unsetenv("TEST_RANK_MODE"); }
};

inline const steps hang{step("hang")};

} // namespace regatta::test

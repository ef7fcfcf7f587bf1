// SPDX-License-Identifier: Apache-2.0
//
// Both sides of ranks that another launcher started, without a launcher: the test is the campaign, and its sockets or
// a child process are the ranks.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failure.hpp"
#include "base/json.hpp"
#include "launch/launcher_ranks.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

// An abstract Unix socket by which ranks find their campaign.
class meeting {
public:
  explicit meeting(const std::string& job) {
    name_.sun_family = AF_UNIX;
    const std::string text = fmt::format("regatta-{}-{}", ::getuid(), job);
    std::memcpy(name_.sun_path + 1, text.data(), text.size());
    bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    REQUIRE(::bind(listener.get(), address(), bytes_) == 0);
    REQUIRE(::listen(listener.get(), 8) == 0);
  }
  unique_fd connect(std::uint32_t rank) const {
    unique_fd fd = make_socket();
    REQUIRE(::connect(fd.get(), address(), bytes_) == 0);
    say(fd, {{"rank", rank}});
    return fd;
  }
  static void say(const unique_fd& fd, const json& what) {
    const auto packet = json::to_cbor(what);
    REQUIRE(::send(fd.get(), packet.data(), packet.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size()));
  }
  unique_fd listener = make_socket();

private:
  static unique_fd make_socket() { return unique_fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&name_); }
  sockaddr_un name_{};
  socklen_t bytes_ = 0;
};

std::string unique_job() {
  static int count = 0;
  return fmt::format("outside-test-{}-{}", ::getpid(), ++count);
}

launcher_process place_of(std::uint32_t size) {
  return {"mpirun", "", 0, size};
}

std::atomic<int> signals{0};

} // namespace

TEST_CASE("a rank that is gone leaves no answer of the others unread") {
  meeting at(unique_job());
  unique_fd first = at.connect(0), second = at.connect(1), third = at.connect(2);
  launcher_ranks ranks(std::move(at.listener), place_of(3));
  second.reset();
  for (const unique_fd* fd : {&first, &third}) meeting::say(*fd, {{"code", 0}}); // the answer to join()
  CHECK_THROWS_AS(ranks.join("file", "transport"), failure);
  for (const unique_fd* fd : {&first, &third}) meeting::say(*fd, {{"code", 3}}); // the outcome of a run
  CHECK(ranks.outcome(0) == 3);
  CHECK(ranks.outcome(1) == std::nullopt);
  CHECK(ranks.outcome(2) == 3);
}

TEST_CASE("each transport of a file joins, and each of them once") {
  meeting at(unique_job());
  const unique_fd rank = at.connect(0);
  launcher_ranks ranks(std::move(at.listener), place_of(1));
  for (int i = 0; i < 3; ++i) meeting::say(rank, {{"code", 0}});
  for (const char* transport : {"first", "second", "first"}) ranks.join("file", transport);
  std::vector<std::string> asked;
  std::array<std::uint8_t, 4096> packet{};
  for (ssize_t n = 0; (n = ::recv(rank.get(), packet.data(), packet.size(), MSG_DONTWAIT)) > 0;)
    asked.push_back(parse_cbor(std::span(packet).first(static_cast<std::size_t>(n))).at("transport"));
  CHECK(asked == std::vector<std::string>{"first", "second"});
}

TEST_CASE("steps of two Slurm jobs have different names") {
  const auto name_of = [](const char* job, const char* step) {
    ::setenv("SLURM_JOB_ID", job, 1);
    ::setenv("SLURM_STEP_ID", step, 1);
    return find_launcher_process().value().job;
  };
  for (const char* other : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) ::unsetenv(other);
  ::setenv("SLURM_PROCID", "0", 1);
  ::setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  CHECK(name_of("1", "23") != name_of("12", "3"));
  for (const char* mine : {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_STEP_ID"}) ::unsetenv(mine);
}

TEST_CASE("signals do not end the wait for ranks") {
  struct sigaction counting {};
  struct sigaction before {};
  counting.sa_handler = [](int) { ++signals; };
  ::sigaction(SIGUSR1, &counting, &before);
  meeting at(unique_job());
  const pthread_t campaign = ::pthread_self();
  unique_fd rank;
  std::thread rank_thread([&] {
    while (signals < 50) {
      ::pthread_kill(campaign, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    rank = at.connect(0);
  });
  CHECK_NOTHROW(launcher_ranks(unique_fd(::dup(at.listener.get())), place_of(1)));
  rank_thread.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("a rank that cannot run on its CPUs says so, and stays for the next run") {
  const std::string job = unique_job();
  meeting at("mpirun " + job);
  const unique_fd first = at.connect(0);
  std::cout.flush(); // else the child could write the buffered output again
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::unsetenv("SLURM_STEP_ID"); // would become part of the name
    ::setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    ::setenv("PMIX_NAMESPACE", job.c_str(), 1);
    ::setenv("PMIX_RANK", "1", 1);
    launcher_request_handlers handlers;
    handlers.run = [](const std::string&, std::uint16_t, std::uint32_t, const blob&, int status) {
      ::close(status);
      return 0;
    };
    start_under_launcher(handlers);
    ::_exit(127);
  }
  {
    launcher_ranks ranks(std::move(at.listener), place_of(2));
    constexpr int absent = 100'000; // more than Linux supports
    ranks.start_run(1, "", 0, {}, {absent}, STDOUT_FILENO);
    CHECK(ranks.outcome(1) == static_cast<int>(exit_code::run));
    ranks.start_run(1, "", 0, {}, {}, STDOUT_FILENO);
    CHECK(ranks.outcome(1) == 0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

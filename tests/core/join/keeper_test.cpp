// SPDX-License-Identifier: Apache-2.0
//
// Launched processes and their agent, without a launcher: sockets or child processes of the test are the processes.
#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/failure.hpp"
#include "join/keeper.hpp"
#include "join/packets.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

struct pair_of_sockets {
  pair_of_sockets() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    agent = unique_fd(ends[0]);
    process = unique_fd(ends[1]);
  }
  unique_fd agent, process;
};

std::string unique_job() {
  static int count = 0;
  return fmt::format("keeper-test-{}-{}", ::getpid(), ++count);
}

std::atomic<int> signals{0};

} // namespace

TEST_CASE("processes that have ended are known, and one with an unread answer has not") {
  pair_of_sockets first, second;
  keepers agent;
  agent.add(3, std::move(first.agent), 1);
  agent.add(4, std::move(second.agent), 2);
  put(first.process.get(), {{"code", 0}});
  CHECK(agent.gone().empty());
  second.process.reset();
  CHECK(agent.gone() == std::vector<std::uint32_t>{4});
}

TEST_CASE("a process that is gone leaves no answer of the others unread") {
  pair_of_sockets first, second, third;
  keepers agent;
  agent.add(0, std::move(first.agent), 1);
  agent.add(1, std::move(second.agent), 2);
  agent.add(2, std::move(third.agent), 3);
  agent.assign({{0, 0}, {1, 1}, {2, 2}}, true);
  second.process.reset();
  for (const auto* s : {&first, &third}) put(s->process.get(), {{"code", 0}}); // the answer to join()
  CHECK_THROWS_AS(agent.join("file", "transport"), failure);
  for (const auto* s : {&first, &third}) put(s->process.get(), {{"code", 3}}); // the outcome of a run
  CHECK(agent.reap(0).how == "ended with code 3");
  CHECK(agent.reap(1).how == "died");
  CHECK(agent.reap(2).how == "ended with code 3");
}

TEST_CASE("a name is listened at by one process at a time") {
  const std::string job = unique_job();
  unique_fd first = listen_at(job);
  REQUIRE(first.get() >= 0);
  CHECK(listen_at(job).get() == -1);
  first.reset();
  CHECK(listen_at(job).get() >= 0);
  CHECK(connect_at(unique_job()).get() == -1);
}

TEST_CASE("descriptors travel with a packet, and the packet's content with them") {
  pair_of_sockets s;
  const pipe_ends pipe = make_pipe();
  put(s.agent.get(), {{"t", "fork"}}, std::array{pipe.write.get(), pipe.write.get()});
  std::vector<unique_fd> got;
  const auto packet = get(s.process.get(), &got);
  REQUIRE(packet.has_value());
  CHECK(packet->at("t") == "fork");
  REQUIRE(got.size() == 2);
  CHECK(write_all(got[1].get(), "x"));
  char byte = 0;
  CHECK(::read(pipe.read.get(), &byte, 1) == 1);
  CHECK(byte == 'x');
}

TEST_CASE("signals do not end the wait for a packet") {
  struct sigaction counting {};
  struct sigaction before {};
  counting.sa_handler = [](int) { ++signals; };
  ::sigaction(SIGUSR1, &counting, &before);
  pair_of_sockets s;
  const pthread_t waiting = ::pthread_self();
  std::thread process([&] {
    while (signals < 50) {
      ::pthread_kill(waiting, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    put(s.process.get(), {{"slot", 4}});
  });
  CHECK(wait_readable(std::array{-1, s.agent.get()}, std::chrono::steady_clock::time_point::max()) == 1);
  CHECK(get(s.agent.get()).value().at("slot") == 4);
  process.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("a process that cannot run on its CPUs says so, and stays for the next run") {
  pair_of_sockets s;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    s.agent.reset();
    launcher_request_handlers handlers;
    handlers.run = [](const std::string&, std::uint16_t, std::uint32_t, const blob&, int status) {
      ::close(status);
      return 0;
    };
    ::_exit(serve_agent(s.process.get(), handlers) ? 0 : 1);
  }
  s.process.reset();
  {
    keepers agent;
    agent.add(1, std::move(s.agent), child);
    agent.assign({{0, 1}}, true);
    constexpr int absent = 100'000; // more than Linux supports
    agent.start({0, "", 0, {}, {absent}, STDOUT_FILENO});
    CHECK(agent.reap(0).how == "ended with code 1");
    agent.start({0, "", 0, {}, {}, STDOUT_FILENO});
    CHECK(agent.reap(0).well);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a process starts a rank, and says how it ended") {
  pair_of_sockets s;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    s.agent.reset();
    ::_exit(serve_agent(s.process.get(), {}) ? 0 : 1);
  }
  s.process.reset();
  {
    keepers agent;
    agent.add(7, std::move(s.agent), child);
    agent.assign({{0, 7}}, false);
    // The rank is this test's own program, whose options doctest does not know: it runs no test and ends.
    process rank = agent.start({0, "127.0.0.1", 1, {1, 2, 3}, {}, STDOUT_FILENO});
    CHECK(rank.pid > 0);
    CHECK(rank.pid != child);
    agent.kill(0);
    CHECK(wait_readable(std::array{rank.handle.get()}, std::chrono::steady_clock::time_point::max()) == 0);
    const rank_starter::end end = agent.reap(0);
    CHECK((end.how == "killed by SIGKILL" || end.well)); // it may have ended before
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

// SPDX-License-Identifier: Apache-2.0
#include "limits.hpp"

#include "campaign/facts.hpp"
#include "rank/clock.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <arpa/inet.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::bench {
namespace {

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set); // best effort: on one core both share it
}

void move(int socket, char* data, std::uint64_t bytes, bool out) {
  while (bytes) {
    const ssize_t n = out ? send(socket, data, bytes, MSG_NOSIGNAL) : recv(socket, data, bytes, 0);
    if (n <= 0) throw std::runtime_error("loopback connection broke");
    data += n;
    bytes -= static_cast<std::uint64_t>(n);
  }
}

} // namespace

double fma_peak() {
  return measure_flops();
}

double memory_copy() {
  constexpr std::size_t bytes = 256u << 20;
  std::vector<char> from(bytes, 1), to(bytes, 2);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t begin = steady_ns();
    std::memcpy(to.data(), from.data(), bytes);
    best = std::max(best, static_cast<double>(bytes) / (static_cast<double>(steady_ns() - begin) * 1e-9));
    from[static_cast<std::size_t>(i)] = to[bytes - 1];
  }
  return best;
}

double loopback_tcp(std::uint64_t bytes) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof a;
  if (bind(listener, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&a), &length) != 0)
    throw std::runtime_error("cannot listen on loopback");
  const std::uint64_t rounds = std::max<std::uint64_t>(4, (1ull << 30) / bytes);
  const pid_t child = fork();
  if (child == 0) {
    pin(1);
    std::vector<char> data(bytes, 1);
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, reinterpret_cast<sockaddr*>(&a), sizeof a) != 0) _exit(1);
    try {
      for (std::uint64_t i = 0; i < rounds; ++i) move(s, data.data(), bytes, true);
    } catch (const std::exception&) {
      _exit(1);
    }
    _exit(0);
  }
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  pin(0);
  const int s = accept(listener, nullptr, nullptr);
  std::vector<char> data(bytes);
  move(s, data.data(), bytes, false); // the first one warms up
  const std::int64_t begin = steady_ns();
  for (std::uint64_t i = 1; i < rounds; ++i) move(s, data.data(), bytes, false);
  const double seconds = static_cast<double>(steady_ns() - begin) * 1e-9;
  close(s);
  close(listener);
  waitpid(child, nullptr, 0);
  sched_setaffinity(0, sizeof before, &before); // what is started later inherits it
  return static_cast<double>(bytes * (rounds - 1)) / seconds;
}

} // namespace regatta::bench

// SPDX-License-Identifier: Apache-2.0
#include "limits.hpp"

#include "machine/speed.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regatta/clock.hpp>

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
    const std::int64_t begin = rg::steady_ns();
    std::memcpy(to.data(), from.data(), bytes);
    best = std::max(best, static_cast<double>(bytes) / (static_cast<double>(rg::steady_ns() - begin) * 1e-9));
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
  const std::int64_t begin = rg::steady_ns();
  for (std::uint64_t i = 1; i < rounds; ++i) move(s, data.data(), bytes, false);
  const double seconds = static_cast<double>(rg::steady_ns() - begin) * 1e-9;
  close(s);
  close(listener);
  waitpid(child, nullptr, 0);
  sched_setaffinity(0, sizeof before, &before); // what is started later inherits it
  return static_cast<double>(bytes * (rounds - 1)) / seconds;
}

double add_arrays(std::uint64_t bytes) {
  const std::size_t n = bytes / sizeof(float);
  std::vector<float> a(n, 1), b(n, 2);
  double best = 1e9;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t begin = rg::steady_ns();
    for (std::size_t k = 0; k < n; ++k) a[k] += b[k];
    best = std::min(best, static_cast<double>(rg::steady_ns() - begin) * 1e-9);
    b[static_cast<std::size_t>(i) % n] = a[n - 1];
  }
  return best;
}

namespace {

// Half of there and back, the median: `first` and `second` are what the two processes do in each round.
template <class First, class Second> double half_round_trip(std::size_t rounds, First first, Second second) {
  const pid_t child = fork();
  if (child == 0) {
    pin(1);
    for (std::size_t i = 0; i < rounds; ++i) second(i);
    _exit(0);
  }
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  pin(0);
  std::vector<double> times;
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::int64_t begin = rg::steady_ns();
    first(i);
    times.push_back(static_cast<double>(rg::steady_ns() - begin) * 0.5e-9);
  }
  waitpid(child, nullptr, 0);
  sched_setaffinity(0, sizeof before, &before);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(rounds / 2), times.end());
  return times[rounds / 2];
}

void receive(int s, char* data, std::size_t bytes, bool spin) {
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t n = recv(s, data + got, bytes - got, spin ? MSG_DONTWAIT : 0);
    if (n > 0) got += static_cast<std::size_t>(n);
    if (n == 0) _exit(1);
  }
}

} // namespace

double ping_pong_tcp(bool spin) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0), a = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  if (bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length) != 0 ||
      connect(a, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0)
    throw std::runtime_error("cannot connect on loopback");
  const int b = accept(listener, nullptr, nullptr), yes = 1;
  for (const int s : {a, b}) setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  char data[8] = {};
  const double seconds = half_round_trip(
      5000,
      [&](std::size_t) {
        send(a, data, sizeof data, MSG_NOSIGNAL);
        receive(a, data, sizeof data, spin);
      },
      [&](std::size_t) {
        receive(b, data, sizeof data, spin);
        send(b, data, sizeof data, MSG_NOSIGNAL);
      });
  for (const int s : {a, b, listener}) close(s);
  return seconds;
}

double ping_pong_memory() {
  struct alignas(128) line {
    std::atomic<std::uint64_t> value{0};
  };
  void* p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::runtime_error("no shared memory");
  line* const lines = new (p) line[2];
  const double seconds = half_round_trip(
      100'000,
      [&](std::size_t i) {
        lines[0].value.store(i + 1, std::memory_order_release);
        while (lines[1].value.load(std::memory_order_acquire) <= i) {
        }
      },
      [&](std::size_t i) {
        while (lines[0].value.load(std::memory_order_acquire) <= i) {
        }
        lines[1].value.store(i + 1, std::memory_order_release);
      });
  munmap(p, 4096);
  return seconds;
}

} // namespace regatta::bench

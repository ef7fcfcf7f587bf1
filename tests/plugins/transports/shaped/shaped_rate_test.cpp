// SPDX-License-Identifier: Apache-2.0
//
// Accuracy of `shaped`: its rate against that of a link which the kernel limits with a token bucket (tc tbf) between
// two network namespaces. Both carry the same stream over tcp.
//
// Exit code 77 if such a link cannot be set up (without root, `ip` or `tc`, or if the kernel rejects it), and if the
// kernel keeps its rate in too few rounds.
//
// The test measures time, because the plugin exists to control it. Clocks pace both sides, the rate is a hundredth of
// what a core can move, and a late wake-up costs time once a stream, not once a message. A busy machine disturbs it all
// the same: the kernel's bucket has given 150 of 200 Mbit/s. So only rounds count in which the kernel kept its rate,
// and both must agree in most of them.
#define DOCTEST_CONFIG_IMPLEMENT
#include "check/harness/endpoint.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace regatta;
using namespace regatta::conformance;

namespace {

constexpr double bits_per_second = 200e6;
constexpr std::uint64_t message_bytes = 256 << 10;
constexpr std::size_t before = 8, measured = 72; // messages: 2 MiB to fill every bucket and window, then 0.75 s
constexpr int rounds = 5, most_rounds = 15;      // that are compared; with those in which the kernel missed its rate

// A network namespace. The kernel removes it once no thread is in it and its descriptor is closed, also after SIGKILL.
class network {
public:
  network() {
    const int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) == 0) here_ = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (home < 0 || here_ < 0 || setns(home, CLONE_NEWNET) != 0)
      throw skipped("no network namespace can be made (it takes root)");
    close(home);
  }
  ~network() { close(here_); }
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  void enter() const { require(setns(here_, CLONE_NEWNET) == 0, "cannot enter a network namespace"); }
  std::string path() const { return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(here_); }

  // Runs a command line inside.
  void run(const std::string& command) const {
    std::string said;
    int status = -1;
    std::thread([&] {
      enter();
      FILE* out = popen((command + " 2>&1").c_str(), "r");
      if (!out) return;
      for (int c = 0; (c = std::getc(out)) != EOF;) said += static_cast<char>(c == '\n' ? ' ' : c);
      status = pclose(out);
    }).join();
    if (status != 0) throw skipped("`" + command + "` fails: " + said);
  }

private:
  int here_ = -1;
};

// Two network namespaces and a link with a limited rate from the first to the second. Packets are long, so that headers
// are a hundredth of the bytes; the bucket holds 20 ms of the rate, because timers may be late.
struct limited_link {
  limited_link() {
    from.run("ip link add name veth0 type veth peer name veth1 netns " + to.path());
    from.run("ip link set veth0 mtu 9000 up && ip address add 10.77.0.1/30 dev veth0");
    to.run("ip link set veth1 mtu 9000 up && ip address add 10.77.0.2/30 dev veth1");
    from.run("tc qdisc add dev veth0 root tbf rate 200mbit burst 500kb limit 8mb");
    // Every kernel has reno; no packet is lost here, so the congestion control does not matter.
    from.run("echo reno > /proc/sys/net/ipv4/tcp_congestion_control");
  }
  network from, to;
};

subject over(const registry& plugins, const std::string& id) {
  subject s = {.file = plugins.find(kind::transport, id).file,
               .plugins = &plugins,
               .tested = &plugins.find(kind::transport, id),
               .parameters = {},
               .other_files = {},
               .seed = 1};
  if (id == "shaped") s.parameters["bandwidth"] = bits_per_second;
  return s;
}

// Returns the bits of payload a second, on the receiver's clock, of a stream from rank 0 to rank 1 over `link`; over
// this machine's own network if it is null.
double rate_of(const subject& which, const limited_link* link) {
  std::array<std::vector<std::uint8_t>, 2> blobs;
  std::array<std::string, 2> wrong;
  pthread_barrier_t both;
  pthread_barrier_init(&both, nullptr, 2);
  std::chrono::duration<double> took{};

  const auto rank = [&](std::uint32_t me) {
    bool waited = false;
    try {
      if (link) (me == 0 ? link->from : link->to).enter();
      subject here = which;
      if (link) here.addresses = {me == 0 ? "10.77.0.1" : "10.77.0.2"};
      endpoint e(here, me, 2, 1);
      blobs[me] = e.listen();
      pthread_barrier_wait(&both);
      waited = true;
      e.connect({blobs[0], blobs[1]});
      const memory m = e.allocate(message_bytes);
      std::vector<std::uint64_t> messages;
      for (std::size_t k = 0; k < before + measured; ++k)
        messages.push_back(me == 0 ? e.send(1, 0, m, 0, message_bytes) : e.recv(0, 0, m, 0, message_bytes));
      e.finish(std::span(messages).first(before));
      const auto begin = std::chrono::steady_clock::now();
      e.finish(std::span(messages).subspan(before));
      if (me == 1) took = std::chrono::steady_clock::now() - begin;
      e.close();
    } catch (const std::exception& e) {
      wrong[me] = e.what();
      if (!waited) pthread_barrier_wait(&both);
    }
  };
  std::thread other(rank, 1);
  std::thread(rank, 0).join(); // a thread of its own: this one stays at home
  other.join();
  pthread_barrier_destroy(&both);
  for (const std::string& w : wrong) REQUIRE_MESSAGE(w.empty(), w);
  return 8.0 * static_cast<double>(measured * message_bytes) / took.count();
}

// Returns the seconds in which four ranks send a message to each other one, at the same time, and receive theirs into
// one buffer, one after the other, or each into its own.
double all_to_all_seconds(const subject& which, bool one_buffer) {
  constexpr std::uint32_t ranks = 4;
  std::vector<std::vector<std::uint8_t>> blobs(ranks);
  pthread_barrier_t all;
  pthread_barrier_init(&all, nullptr, ranks);
  std::array<double, ranks> took{};
  const auto rank = [&](std::uint32_t me) {
    endpoint e(which, me, ranks, 1);
    blobs[me] = e.listen();
    pthread_barrier_wait(&all);
    e.connect(blobs);
    const memory m = e.allocate(2 * ranks * message_bytes);
    pthread_barrier_wait(&all);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::uint64_t> messages;
    for (std::uint32_t r = 0; r < ranks; ++r)
      if (r != me) messages.push_back(e.recv(r, 0, m, one_buffer ? 0 : r * message_bytes, message_bytes));
    for (std::uint32_t r = 0; r < ranks; ++r)
      if (r != me) messages.push_back(e.send(r, 0, m, (ranks + r) * message_bytes, message_bytes));
    e.finish(messages);
    took[me] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    e.close();
  };
  std::vector<std::thread> others;
  for (std::uint32_t r = 1; r < ranks; ++r) others.emplace_back(rank, r);
  rank(0);
  for (std::thread& t : others) t.join();
  pthread_barrier_destroy(&all);
  return *std::ranges::max_element(took);
}

// Returns the seconds that a message takes which is one chunk.
double chunk_alone_seconds(subject which) {
  which.parameters["quantum"] = message_bytes;
  std::array<std::vector<std::uint8_t>, 2> blobs;
  pthread_barrier_t both;
  pthread_barrier_init(&both, nullptr, 2);
  double took = 0;
  const auto rank = [&](std::uint32_t me) {
    endpoint e(which, me, 2, 1);
    blobs[me] = e.listen();
    pthread_barrier_wait(&both);
    e.connect({blobs[0], blobs[1]});
    const memory m = e.allocate(message_bytes);
    pthread_barrier_wait(&both);
    const auto begin = std::chrono::steady_clock::now();
    e.finish(std::array{me == 0 ? e.send(1, 0, m, 0, message_bytes) : e.recv(0, 0, m, 0, message_bytes)});
    if (me == 1) took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    e.close();
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  pthread_barrier_destroy(&both);
  return took;
}

bool close_to(double rate, double expected) {
  return std::abs(rate - expected) <= 0.05 * expected;
}

std::optional<limited_link> kernel_link;
bool too_busy = false; // the kernel kept its rate in too few rounds

} // namespace

TEST_CASE("shaped keeps its rate as the kernel's token bucket does, within 5 %") {
  const auto plugins = registry::of_files({REGATTA_PLUGINS "/tcp.so", REGATTA_PLUGINS "/shaped.so"});
  const subject tcp = over(plugins, "tcp"), shaped = over(plugins, "shaped");
  // Without the kernel's limit the link is a hundred times as fast, also on a busy machine.
  double slowest = std::numeric_limits<double>::infinity();
  int compared = 0, alike = 0; // rounds
  for (int r = 0; r < most_rounds && compared < rounds; ++r) {
    const double by_kernel = rate_of(tcp, &*kernel_link);
    slowest = std::min(slowest, by_kernel);
    if (!close_to(by_kernel, bits_per_second)) {
      std::printf("round %d does not count: kernel %.1f Mbit/s\n", r, by_kernel / 1e6);
      continue;
    }
    const double by_shaped = rate_of(shaped, nullptr); // at once, so that the machine is as busy
    std::printf("kernel %.1f Mbit/s, shaped %.1f Mbit/s\n", by_kernel / 1e6, by_shaped / 1e6);
    ++compared;
    alike += close_to(by_shaped, by_kernel);
  }
  CHECK(slowest < 1.05 * bits_per_second);
  too_busy = compared < rounds;
  if (!too_busy) CHECK(2 * alike > rounds);
}

// The receiver's card takes a chunk while it comes, not after it has come: otherwise a chunk would take twice its time.
TEST_CASE("shaped: a message that is one chunk takes its time on the link, within a quarter") {
  const auto plugins = registry::of_files({REGATTA_PLUGINS "/tcp.so", REGATTA_PLUGINS "/shaped.so"});
  const subject shaped = over(plugins, "shaped");
  const double expected = 8.0 * message_bytes / bits_per_second;
  int alike = 0;
  for (int r = 0; r < rounds; ++r) {
    const double took = chunk_alone_seconds(shaped);
    std::printf("one chunk: %.2f ms of %.2f ms\n", 1e3 * took, 1e3 * expected);
    alike += took > 0.95 * expected && took < 1.25 * expected;
  }
  CHECK(2 * alike > rounds);
}

// Messages that wait for an earlier one into the same buffer have passed the receiver's card meanwhile: otherwise they
// would take 5/3 of the time here.
TEST_CASE("shaped: receives into one buffer take no longer than those into several, beyond a quarter") {
  const auto plugins = registry::of_files({REGATTA_PLUGINS "/tcp.so", REGATTA_PLUGINS "/shaped.so"});
  const subject shaped = over(plugins, "shaped");
  int alike = 0;
  for (int r = 0; r < rounds; ++r) {
    const double several = all_to_all_seconds(shaped, false), one = all_to_all_seconds(shaped, true);
    std::printf("all-to-all: %.1f ms, into one buffer %.1f ms\n", 1e3 * several, 1e3 * one);
    alike += one < 1.25 * several;
  }
  CHECK(2 * alike > rounds);
}

int main(int argc, char** argv) {
  try {
    kernel_link.emplace();
  } catch (const skipped& why) {
    std::printf("skipped: %s\n", why.what());
    return 77;
  }
  const int failed = doctest::Context(argc, argv).run();
  if (failed || !too_busy) return failed;
  std::printf("skipped: the machine is too busy for the kernel's own token bucket\n");
  return 77;
}

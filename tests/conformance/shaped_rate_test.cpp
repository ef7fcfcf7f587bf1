// SPDX-License-Identifier: Apache-2.0
//
// Accuracy of `shaped`: its rate against that of a link which the kernel limits with a token bucket (tc tbf) between two
// network namespaces. Both carry the same stream over tcp.
//
// Exit code 77 if such a link cannot be set up: without root, `ip` or `tc`, or if the kernel rejects it.
//
// The test measures time, because the plugin exists to control it. It is stable nevertheless: clocks pace both sides, the
// rate is a hundredth of what a core can move, a late wake-up costs time once a stream, not once a message, and the
// median drops rounds that a busy machine disturbed.
#define DOCTEST_CONFIG_IMPLEMENT
#include "check/harness/endpoint.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
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
constexpr int rounds = 3;

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

// Returns the bits of payload a second, on the receiver's clock, of a stream from rank 0 to rank 1 over `link`; over this
// machine's own network if it is null.
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
      if (link) here.address = me == 0 ? "10.77.0.1" : "10.77.0.2";
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

double median(std::array<double, rounds> values) {
  std::nth_element(values.begin(), values.begin() + rounds / 2, values.end());
  return values[rounds / 2];
}

std::optional<limited_link> kernel_link;

} // namespace

TEST_CASE("shaped keeps its rate as the kernel's token bucket does, within 5 %") {
  const auto plugins = registry::of_files({REGATTA_PLUGINS "/tcp.so", REGATTA_PLUGINS "/shaped.so"});
  const subject tcp = over(plugins, "tcp"), shaped = over(plugins, "shaped");
  std::array<double, rounds> by_kernel{}, by_shaped{};
  for (int r = 0; r < rounds; ++r) { // in turn, so that a busy machine slows both
    by_kernel[static_cast<std::size_t>(r)] = rate_of(tcp, &*kernel_link);
    by_shaped[static_cast<std::size_t>(r)] = rate_of(shaped, nullptr);
  }
  CAPTURE(by_kernel);
  CAPTURE(by_shaped);
  const double kernels = median(by_kernel), shapeds = median(by_shaped);
  std::printf("kernel %.1f Mbit/s, shaped %.1f Mbit/s\n", kernels / 1e6, shapeds / 1e6);
  // Checks that the kernel's limit is in force; without it the link is a hundred times as fast.
  CHECK(kernels == doctest::Approx(bits_per_second).epsilon(0.05));
  CHECK(shapeds == doctest::Approx(kernels).epsilon(0.05));
}

int main(int argc, char** argv) {
  try {
    kernel_link.emplace();
  } catch (const skipped& why) {
    std::printf("skipped: %s\n", why.what());
    return 77;
  }
  return doctest::Context(argc, argv).run();
}

// SPDX-License-Identifier: Apache-2.0
//
// Guarantees of tcp only; `regatta check` tests those of every transport.
#include "check/harness/rank_group.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regatta/ext/counters.h>

using namespace regatta;
using namespace regatta::conformance;

namespace {

const subject& tcp() {
  static const auto plugins = registry::of_files({REGATTA_PLUGINS "/tcp.so"});
  static const subject s = {.file = REGATTA_PLUGINS "/tcp.so",
                            .plugins = &plugins,
                            .tested = &plugins.find(kind::transport, "tcp"),
                            .parameters = {},
                            .other_files = {},
                            .seed = 1};
  return s;
}

// Connects to the blob's address, without the run's secret.
int connect_without_secret(const std::vector<std::uint8_t>& blob) {
  std::istringstream text(std::string(blob.begin(), blob.end()));
  std::string scheme, token, address;
  std::uint16_t port = 0;
  text >> scheme >> token >> address >> port;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  REQUIRE(inet_pton(AF_INET, address.c_str(), &to.sin_addr) == 1);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  return fd;
}

// Whether a socket can listen on ::1.
bool has_ipv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 any_port{};
  any_port.sin6_family = AF_INET6;
  any_port.sin6_addr = in6addr_loopback;
  const bool bound = fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&any_port), sizeof any_port) == 0;
  if (fd >= 0) close(fd);
  return bound;
}

// A host's trace.
struct recorder {
  std::vector<rg_span> spans;
  std::set<std::string> texts;
  std::uint32_t on = 0;
  rg_trace table = rg::make_versioned<rg_trace>();

  recorder() {
    table.context = this;
    table.on = &on;
    table.span = [](void* self, const rg_span* s) { static_cast<recorder*>(self)->spans.push_back(*s); };
    table.text = [](void* self, const char* text) {
      return static_cast<recorder*>(self)->texts.insert(text).first->c_str();
    };
  }
};

} // namespace

TEST_CASE("tcp: a traced run has a span for each message, in the order on the wire") {
  recorder sender, receiver;
  endpoint a(tcp(), 0, 2, 1, {}, {}, &sender.table), b(tcp(), 1, 2, 1, {}, {}, &receiver.table);
  const std::vector<std::vector<std::uint8_t>> blobs = {a.listen(), b.listen()};
  std::thread other([&] { b.connect(blobs); });
  a.connect(blobs);
  other.join();
  const memory m = a.allocate(1 << 20), n = b.allocate(1 << 20);
  const auto exchange = [&](const std::vector<std::uint64_t>& sizes) {
    std::vector<std::uint64_t> sends, receives;
    for (const std::uint64_t bytes : sizes) {
      sends.push_back(a.send(1, 0, m, 0, bytes));
      receives.push_back(b.recv(0, 0, n, 0, bytes));
    }
    std::thread far([&] { b.finish(receives); });
    a.finish(sends);
    far.join();
  };
  exchange({100});
  CHECK(sender.spans.empty()); // nothing is recorded yet
  CHECK(receiver.spans.empty());
  sender.on = receiver.on = 1;
  const std::vector<std::uint64_t> sizes = {8, 1 << 20, 0, 5000};
  exchange(sizes);
  for (const auto& [r, name] :
       {std::pair(&sender, "send to rank 1, lane 0"), {&receiver, "receive from rank 0, lane 0"}}) {
    CAPTURE(name);
    REQUIRE(r->spans.size() == sizes.size());
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const rg_span& s = r->spans[k];
      CHECK(std::string(s.name) == name);
      CHECK(std::string(s.category) == "communication");
      CHECK(std::string(s.number_name) == "bytes");
      CHECK(s.number == sizes[k]);
      CHECK(s.track == r->spans[0].track);
      CHECK(s.begin_ns <= s.end_ns);
      if (k) CHECK(r->spans[k - 1].end_ns <= s.begin_ns);
    }
  }
}

// A strategy staggers its sends, so that not all ranks send to the same one at first. Receives that were posted before
// in another order had put the connections into theirs.
TEST_CASE("tcp: messages to several ranks leave in the order of their sends, whatever receives were posted before") {
  recorder trace;
  endpoint a(tcp(), 0, 4, 1, {}, {}, &trace.table), b(tcp(), 1, 4, 1), c(tcp(), 2, 4, 1), d(tcp(), 3, 4, 1);
  const std::vector<std::vector<std::uint8_t>> blobs = {a.listen(), b.listen(), c.listen(), d.listen()};
  std::vector<std::thread> others;
  for (endpoint* e : {&b, &c, &d}) others.emplace_back([e, &blobs] { e->connect(blobs); });
  a.connect(blobs);
  for (std::thread& t : others) t.join();
  trace.on = 1;
  const memory m = a.allocate(4096);
  std::vector<std::uint64_t> all;
  for (const std::uint32_t peer : {1, 2, 3}) all.push_back(a.recv(peer, 0, m, 64 * peer, 64));
  for (const std::uint32_t peer : {3, 1, 2}) all.push_back(a.send(peer, 0, m, 0, 64));
  others.clear();
  for (endpoint* e : {&b, &c, &d})
    others.emplace_back([e] {
      const memory n = e->allocate(4096);
      const std::vector<std::uint64_t> mine{e->recv(0, 0, n, 0, 64), e->send(0, 0, n, 64, 64)};
      e->finish(mine);
    });
  a.finish(all);
  for (std::thread& o : others) o.join();
  std::vector<std::string> sent;
  for (const rg_span& s : trace.spans)
    if (std::string(s.name).starts_with("send")) sent.emplace_back(s.name);
  CHECK(sent == std::vector<std::string>{"send to rank 3, lane 0", "send to rank 1, lane 0", "send to rank 2, lane 0"});
}

TEST_CASE("tcp: connections without the secret get no answer, and ranks connect beside them") {
  const subject& which = tcp();
  endpoint a(which, 0, 2, 2), b(which, 1, 2, 2);
  const std::vector<std::vector<std::uint8_t>> blobs = {a.listen(), b.listen()};
  // One sends nothing, one sends random bytes, one closes at once, one sends a greeting with a wrong token.
  const int silent = connect_without_secret(blobs[0]), loud = connect_without_secret(blobs[0]),
            gone = connect_without_secret(blobs[0]), close_to = connect_without_secret(blobs[0]);
  close(gone);
  const std::vector<char> nonsense(1000, 'x');
  CHECK(send(loud, nonsense.data(), nonsense.size(), MSG_NOSIGNAL) == 1000);
  char greeting[80] = "regtcp/1";
  const std::uint32_t fields[] = {1, 0, 0, 2, 2, 0}; // from, to, lane, lanes, ranks, reserved
  std::memcpy(greeting + 8, fields, sizeof fields);
  CHECK(send(close_to, greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting);

  std::thread other([&] { b.connect(blobs); });
  a.connect(blobs);
  other.join();
  char answer[64];
  for (const int fd : {silent, loud, close_to}) {
    CHECK(recv(fd, answer, sizeof answer, 0) <= 0);
    close(fd);
  }
  const memory m = a.allocate(8), n = b.allocate(8);
  const std::uint64_t sent = a.send(1, 1, m, 0, 8);
  a.finish(sent);
  CHECK(b.finish(b.recv(0, 1, n, 0, 8)) == 8);
}

TEST_CASE("tcp: ranks connect beside more connections without the secret than there are descriptors") {
  const subject& which = tcp();
  endpoint a(which, 0, 2, 2), b(which, 1, 2, 2);
  const std::vector<std::vector<std::uint8_t>> blobs = {a.listen(), b.listen()};
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); // also where this test fails
    for (int i = 0; i < 200; ++i) connect_without_secret(blobs[0]);
    (void)!write(ready[1], "x", 1);
    for (;;) pause();
  }
  char all_there;
  REQUIRE(::read(ready[0], &all_there, 1) == 1);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int next = dup(0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(next) + 30;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  close(next);
  std::thread other([&] { b.connect(blobs); });
  a.connect(blobs);
  other.join();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  const memory m = a.allocate(8), n = b.allocate(8);
  const std::uint64_t sent = a.send(1, 1, m, 0, 8);
  a.finish(sent);
  CHECK(b.finish(b.recv(0, 1, n, 0, 8)) == 8);
}

TEST_CASE("tcp: a refused connection is reported with rank and address") {
  const subject& which = tcp();
  std::vector<std::vector<std::uint8_t>> blobs(2);
  {
    endpoint a(which, 0, 2, 1);
    blobs[0] = a.listen();
  }
  endpoint b(which, 1, 2, 1);
  blobs[1] = b.listen();
  CHECK(b.try_connect(blobs, operation_timeout) == RG_E_PEER);
  INFO(b.last_error());
  CHECK(b.last_error().find("rank 0 at 127.0.0.1 port ") != std::string::npos);
}

TEST_CASE("tcp: counters include headers: 64 bytes before a long payload, 8 before others") {
  run_ranks(tcp(), {}, [](member& self) {
    const memory m = self->allocate(100'000);
    if (self->rank() == 0) {
      self->finish(self->send(1, 0, m, 0, 100'000));
      self->finish(self->send(1, 0, m, 0, 0));
      require(self->counters().bytes_sent == 100'072, "counts " + std::to_string(self->counters().bytes_sent));
    } else {
      self->finish(self->recv(0, 0, m, 0, 100'000));
      self->finish(self->recv(0, 0, m, 0, 0));
      require(self->counters().bytes_received == 100'072, "counts " + std::to_string(self->counters().bytes_received));
    }
  });
}

// How many sockets of this process have both ends at 127.0.0.2.
std::size_t sockets_at_second_address() {
  const auto is_there = [](int fd, auto name_of) {
    sockaddr_in name{};
    socklen_t size = sizeof name;
    return name_of(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 && name.sin_family == AF_INET &&
           ntohl(name.sin_addr.s_addr) == 0x7f000002;
  };
  std::size_t count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += is_there(fd, ::getsockname) && is_there(fd, ::getpeername);
  return count;
}

TEST_CASE("tcp: connections are spread over the addresses of the ranks, and each carries bytes") {
  subject two = tcp();
  two.addresses = {"127.0.0.1", "127.0.0.2"};
  run_ranks(two, {.ranks = 3, .lanes = 2}, [](member& self) {
    constexpr std::uint64_t bytes = 1'000'000;
    const memory m = self->allocate(2 * bytes);
    std::vector<std::uint64_t> pending;
    for (std::uint32_t peer = 0; peer < 3; ++peer)
      for (std::uint32_t lane = 0; lane < 2 && peer != self->rank(); ++lane) {
        pending.push_back(self->send(peer, lane, m, 0, bytes));
        pending.push_back(self->recv(peer, lane, m, bytes, bytes));
      }
    self->finish(pending);
    const rg_counter* counters = nullptr;
    std::uint32_t count = 0;
    self->check(self->extension<rg_own_counters>(RG_EXT_COUNTERS)->read(self->self(), &counters, &count), "read");
    std::map<std::string, double> read;
    for (std::uint32_t i = 0; i < count; ++i) read[counters[i].name] = counters[i].value;
    // Of each peer's two lanes one is on each rail.
    for (const char* rail : {"rail_0_bytes", "rail_1_bytes"})
      require(read.at(rail) >= 4 * bytes && read.at(rail) < 4 * bytes + 1000,
              std::string(rail) + " is " + std::to_string(read.at(rail)));
    // Both ends of three connections are in this process.
    const std::size_t there = sockets_at_second_address();
    require(there == 6, std::to_string(there) + " sockets are at 127.0.0.2");
    self.barrier();
  });
}

TEST_CASE("tcp: an address of nobody is refused") {
  subject wrong = tcp();
  wrong.addresses = {"127.0.0.1", "203.0.113.1"};
  endpoint e(wrong, 0, 2, 1);
  rg_blob blob{};
  CHECK(e.try_listen(blob) == RG_E_CONFIG);
  CHECK(e.last_error().find("cannot listen on 203.0.113.1") != std::string::npos);
}

TEST_CASE("tcp: three ranks exchange messages over IPv6") {
  if (!has_ipv6()) {
    MESSAGE("skipped: this machine has no IPv6, nothing can listen on ::1");
    return;
  }
  subject six = tcp();
  six.addresses = {"::1"};
  {
    endpoint a(six, 0, 2, 1);
    const auto blob = a.listen();
    CHECK(std::string(blob.begin(), blob.end()).find(" ::1 ") != std::string::npos);
  }
  // Longer than any buffer on the way, added and plain.
  constexpr std::size_t count = 3'000'000;
  run_ranks(six, {.ranks = 3, .lanes = 2}, [](member& self) {
    const std::uint32_t me = self->rank(), right = (me + 1) % 3, left = (me + 2) % 3;
    const memory m = self->allocate(2 * count * sizeof(float)), sum = self->allocate(count * sizeof(float));
    std::fill_n(m.floats(), count, static_cast<float>(me + 1));
    std::fill_n(sum.floats(), count, 10.0F);
    const std::uint64_t bytes = count * sizeof(float);
    for (const std::uint64_t cookie :
         {self->recv(left, 1, m, bytes, bytes), self->recv(left, 0, sum, 0, bytes, RG_TRANSFER_ADD),
          self->send(right, 0, m, 0, bytes), self->send(right, 1, m, 0, bytes)})
      self->finish(cookie);
    const auto theirs = static_cast<float>(left + 1);
    require(std::count(m.floats() + count, m.floats() + 2 * count, theirs) == count, "a message arrives changed");
    require(std::count(sum.floats(), sum.floats() + count, 10 + theirs) == count, "a message was added wrongly");
  });
}

// SPDX-License-Identifier: Apache-2.0
//
// The control channel's parts alone: cryptography, handshake, frames, all-gathers, CPUs, addresses.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu_mask.hpp"
#include "base/failure.hpp"
#include "control/channel.hpp"
#include "control/client.hpp"
#include "control/crypto.hpp"
#include "control/handshake.hpp"
#include "control/proven_acceptor.hpp"
#include "control/rank_arguments.hpp"
#include "launch/all_gather.hpp"
#include "launch/cpus.hpp"
#include "launch/line_splitter.hpp"
#include "launch/memory.hpp"
#include "launch/process.hpp"
#include "temporary_folder.hpp"

using namespace regatta;

namespace {

blob of(const std::string& text) {
  return {text.begin(), text.end()};
}

// Two ends of one connection over loopback.
struct connection {
  asio::io_context io{1};
  tcp::socket a{io}, b{io};
  connection() {
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    a.connect(acceptor.local_endpoint());
    acceptor.accept(b);
  }
};

// How a coroutine ended: "" or what it threw.
using ending = std::optional<std::string>;

std::function<void(std::exception_ptr)> into(ending& e) {
  return [&e](std::exception_ptr p) {
    e = "";
    try {
      if (p) std::rethrow_exception(p);
    } catch (const std::exception& x) {
      e = x.what();
    }
  };
}

asio::awaitable<void> admit(tcp::socket& socket, const blob& secret, std::optional<std::uint32_t>& rank) {
  try {
    bool proven = false;
    rank = (co_await admit_rank(socket, {&secret, 1}, proven)).number;
    CHECK(proven);
  } catch (...) {
    socket.close();
    throw;
  }
}

asio::awaitable<void> prove(tcp::socket& socket, const blob& secret, std::uint32_t rank) {
  try {
    co_await prove_rank(socket, secret, rank);
  } catch (...) {
    socket.close();
    throw;
  }
}

} // namespace

TEST_CASE("HMAC-SHA-256 agrees with RFC 4231") {
  // Test case 2: key "Jefe", data "what do ya want for nothing?", here in two parts.
  const digest d = hmac_sha256(of("Jefe"), {bytes_of("what do ya want "), bytes_of("for nothing?")});
  CHECK(fmt::format("{:02x}", fmt::join(d, "")) == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST_CASE("random bytes differ, and are compared in full") {
  const auto a = random_bytes(32), b = random_bytes(32);
  CHECK(a.size() == 32);
  CHECK(a != b);
  CHECK(equal_in_constant_time(a, a));
  CHECK_FALSE(equal_in_constant_time(a, b));
  CHECK_FALSE(equal_in_constant_time(a, bytes_view(a).first(31)));
}

TEST_CASE("the arguments of a rank are read back as they were written") {
  std::array<int, 2> ends{};
  const blob secret = random_bytes(secret_bytes);
  for (const std::string host : {"127.0.0.1", "::1"}) {
    REQUIRE(::pipe(ends.data()) == 0);
    REQUIRE(::write(ends[1], secret.data(), secret.size()) == static_cast<ssize_t>(secret.size()));
    const auto words = to_command_line(host, 4711, 3, ends[0], 17);
    REQUIRE(words.size() == 9);
    CHECK(words[8] == "17");
    CHECK(words[0] == "rank");
    CHECK(words[1] == "--connect");
    const auto got = read_rank_arguments(words[2], 3, ends[0]);
    CHECK(got.host == host);
    CHECK(got.port == 4711);
    CHECK(got.secret == secret);
    ::close(ends[1]);
  }
  CHECK_THROWS_WITH_AS(read_rank_arguments("127.0.0.1", 0, 0), "--connect: expected HOST:PORT, got \"127.0.0.1\"",
                       failure);
  CHECK_THROWS_AS(read_rank_arguments("127.0.0.1:70000", 0, 0), failure);
  CHECK_THROWS_AS(read_rank_arguments("127.0.0.1:12x", 0, 0), failure);
  // A pipe that ends too early.
  REQUIRE(::pipe(ends.data()) == 0);
  ::close(ends[1]);
  CHECK_THROWS_AS(read_rank_arguments("127.0.0.1:12", 0, ends[0]), failure);
  ::close(ends[0]);
}

TEST_CASE("both ends prove that they know the secret") {
  const blob secret = random_bytes(32), other = random_bytes(32);
  for (const auto& [right, same] : {std::pair{secret, true}, std::pair{other, false}}) {
    connection c;
    ending coordinator, rank;
    std::optional<std::uint32_t> who;
    asio::co_spawn(c.io, admit(c.a, secret, who), into(coordinator));
    asio::co_spawn(c.io, prove(c.b, right, 70000), into(rank));
    c.io.run();
    REQUIRE(coordinator);
    REQUIRE(rank);
    CHECK(who.has_value() == same);
    if (same) {
      CHECK(*who == 70000);
      CHECK(*coordinator == "");
      CHECK(*rank == "");
    } else {
      CHECK(*coordinator == "expected proof of this run's secret, got none: it is no rank of this run");
      CHECK(*rank == "the coordinator has not accepted this process's proof of the secret");
    }
  }
}

TEST_CASE("an answer cannot be reflected") {
  // Two coordinators tied together: each gets the other's challenge as if it were a rank's, and whatever comes back.
  connection left, right;
  const blob secret = random_bytes(32);
  ending coordinator;
  std::optional<std::uint32_t> who;
  asio::co_spawn(left.io, admit(left.a, secret, who), into(coordinator));
  const auto reflect = [&]() -> asio::awaitable<void> {
    std::array<std::uint8_t, 36> challenge{};
    co_await asio::async_read(left.b, asio::buffer(challenge), asio::use_awaitable);
    blob answer(68, 0);
    std::copy(challenge.begin() + 4, challenge.end(), answer.begin() + 4);  // its nonce as ours
    std::copy(challenge.begin() + 4, challenge.end(), answer.begin() + 36); // and as the proof
    co_await asio::async_write(left.b, asio::buffer(answer), asio::use_awaitable);
  };
  ending stranger;
  asio::co_spawn(left.io, reflect(), into(stranger));
  left.io.run();
  CHECK_FALSE(who);
  CHECK(*coordinator == "expected proof of this run's secret, got none: it is no rank of this run");
}

TEST_CASE("the acceptor tells the address of a connection that it refuses") {
  asio::io_context io;
  std::vector<std::string> refused, warned;
  const auto admit_nobody = [](const proven_rank&, tcp::socket&) { return std::string("nobody is expected"); };
  const auto run = [&io](asio::awaitable<void> c) {
    asio::co_spawn(io, std::move(c), [](const std::exception_ptr&) {});
  };
  proven_acceptor d(io, {{random_bytes(32)},
                         1,
                         admit_nobody,
                         run,
                         [&](const std::string& text) { warned.push_back(text); },
                         [&](const std::string& address) {
                           refused.push_back(address);
                           io.stop();
                         }});
  d.open("127.0.0.1");
  d.begin();
  tcp::socket stranger(io);
  stranger.connect({asio::ip::make_address("127.0.0.1"), d.port()});
  asio::write(stranger, asio::buffer(blob(68))); // the size of a proof
  io.run();
  CHECK(refused == std::vector<std::string>{"127.0.0.1"});
  CHECK(peer_address(stranger) == "127.0.0.1");
  CHECK(peer_address(tcp::socket(io)).empty());
}

TEST_CASE("a rank does not believe a coordinator that knows nothing") {
  for (const bool magic : {false, true}) {
    connection c;
    const blob secret = random_bytes(32);
    ending rank, impostor;
    asio::co_spawn(c.io, prove(c.b, secret, 1), into(rank));
    const auto pretend = [&]() -> asio::awaitable<void> {
      blob text(36, 'x');
      if (magic) std::memcpy(text.data(), "RGT1", 4);
      co_await asio::async_write(c.a, asio::buffer(text), asio::use_awaitable);
      std::array<std::uint8_t, 68> answer{};
      co_await asio::async_read(c.a, asio::buffer(answer), asio::use_awaitable);
      // The rank's own proof sent back to it.
      co_await asio::async_write(c.a, asio::buffer(answer.data() + 36, 32), asio::use_awaitable);
    };
    asio::co_spawn(c.io, pretend(), into(impostor));
    c.io.run();
    CHECK(*rank == (magic ? "expected proof of this run's secret, got none: it is another run's coordinator"
                          : "expected a coordinator of this version of regatta, got another protocol"));
  }
}

TEST_CASE("frames arrive as they were sent, in order") {
  connection c;
  const auto from = std::make_shared<channel>(std::move(c.a)), to = std::make_shared<channel>(std::move(c.b));
  blob large(8 << 20);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::uint8_t>(i * 2654435761u >> 24);
  int done = 0;
  from->send({{"n", 0}}, {}, [&] { ++done; });
  from->send({{"n", 1}}, std::make_shared<const blob>(large), [&] { ++done; });
  from->send({{"n", 2}, {"text", "broken \xff text"}}, std::make_shared<const blob>(), [&] { ++done; });
  ending reader;
  const auto read = [&]() -> asio::awaitable<void> {
    message m = co_await to->receive();
    CHECK(m.header.at("n") == 0);
    CHECK(m.payload.empty());
    m = co_await to->receive();
    CHECK(m.header.at("n") == 1);
    CHECK(m.payload == large);
    m = co_await to->receive();
    CHECK(m.header.at("text") == "broken \xef\xbf\xbd text");
    from->close();
    co_await to->receive();
  };
  asio::co_spawn(c.io, read(), into(reader));
  c.io.run();
  CHECK(done == 3);
  CHECK(reader.value_or("") != ""); // the end of the connection
  bool told = false;
  from->send({{"n", 3}}, {}, [&] { told = true; });
  CHECK(told);
}

TEST_CASE("a frame above the limits is refused before it is sent") {
  connection c;
  const auto from = std::make_shared<channel>(std::move(c.a));
  bool done = false;
  CHECK_THROWS_AS(from->send({{"text", std::string(max_header_bytes, 'x')}}, {}, [&] { done = true; }), failure);
  CHECK_FALSE(done);
}

TEST_CASE("bytes that are no frame are refused before anything is allocated for them") {
  const auto prefix = [](const char* magic, std::uint32_t header, std::uint64_t payload) {
    blob out(magic, magic + 4);
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::uint8_t>(header >> (8 * i)));
    for (int i = 0; i < 8; ++i) out.push_back(static_cast<std::uint8_t>(payload >> (8 * i)));
    return out;
  };
  auto no_object = prefix("RGF1", 2, 0);
  no_object.insert(no_object.end(), {'[', ']'});
  for (const auto& bytes : {of("GET / HTTP/1.1\r\n\r\n"), prefix("RGF1", UINT32_MAX, 0), prefix("RGF1", 2, UINT64_MAX),
                            prefix("rgf1", 2, 0), no_object}) {
    connection c;
    const auto to = std::make_shared<channel>(std::move(c.b));
    asio::write(c.a, asio::buffer(bytes));
    ending reader;
    const auto read = [&]() -> asio::awaitable<void> { co_await to->receive(); };
    asio::co_spawn(c.io, read(), into(reader));
    c.io.run();
    CHECK(reader->find("frame") != std::string::npos);
  }
}

TEST_CASE("a frame takes memory for bytes that came, not for those that it announces") {
  connection c;
  const auto to = std::make_shared<channel>(std::move(c.b));
  const std::string frame = std::string("RGF1\x02\0\0\0\0\0\0\x20\0\0\0\0{}", 18) + "some"; // 512 MiB announced
  asio::write(c.a, asio::buffer(frame));
  c.a.close();
  const auto peak_kib = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
  };
  const long before = peak_kib();
  ending reader;
  const auto read = [&]() -> asio::awaitable<void> { co_await to->receive(); };
  asio::co_spawn(c.io, read(), into(reader));
  c.io.run();
  CHECK(reader.value_or("") != ""); // the end of the connection
  CHECK(peak_kib() < before + (64 << 10));
}

TEST_CASE("a rank whose coordinator is gone ends itself") {
  const blob secret = random_bytes(32);
  asio::io_context io{1};
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  const auto port = acceptor.local_endpoint().port();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(acceptor.native_handle());
    try {
      const control_client client("127.0.0.1", port, 5, secret, status_page());
      for (;;) ::pause();
    } catch (...) {
      ::_exit(99);
    }
  }
  tcp::socket socket = acceptor.accept();
  acceptor.close();
  std::optional<std::uint32_t> who;
  ending coordinator;
  asio::co_spawn(io, admit(socket, secret, who), into(coordinator));
  io.run();
  CHECK(who == 5u);
  io.restart();
  auto wire = std::make_shared<channel>(std::move(socket));
  wire->send({{"t", "job"}, {"ranks", 6}}, std::make_shared<const blob>(nlohmann::json::to_cbor({{"a", 1}})),
             [&] { wire->close(); });
  io.run();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(describe_status(status) == "exited with code 1");
}

TEST_CASE("all-gather: complete, repeated, out of order, dead ends") {
  all_gather g(3);
  CHECK_FALSE(g.add(2, "a", of("two")));
  CHECK_FALSE(g.add(0, "a", of("zero")));
  CHECK_FALSE(g.deadlock());
  CHECK_THROWS_AS(g.add(0, "b", {}), failure);
  auto all = g.add(1, "a", {});
  REQUIRE(all);
  CHECK(*all == std::vector<blob>{of("zero"), {}, of("two")});

  CHECK_FALSE(g.add(0, "a", {})); // the same tag again is another round
  CHECK_FALSE(g.add(1, "b", {}));
  CHECK_FALSE(g.deadlock()); // rank 2 computes
  CHECK_FALSE(g.add(2, "a", {}));
  CHECK(g.deadlock().value_or("").find("rank 1 in \"b\"") != std::string::npos);

  all_gather some(4); // two groups at once, one of whose members waits elsewhere
  CHECK_FALSE(some.add(0, "t", of("zero"), {0, 2}));
  CHECK_FALSE(some.add(1, "t", of("one"), {1, 2, 3}));
  CHECK_FALSE(some.add(3, "t", of("three"), {1, 2, 3}));
  CHECK_FALSE(some.deadlock());
  CHECK(some.add(2, "t", of("two"), {0, 2}) == std::vector<blob>{of("zero"), of("two")});
  CHECK(some.add(2, "t", of("2"), {1, 2, 3}) == std::vector<blob>{of("one"), of("2"), of("three")});

  all_gather h(2);
  h.leave(0);
  CHECK_FALSE(h.deadlock());
  CHECK_FALSE(h.add(1, "c", {}));
  CHECK(h.deadlock().value_or("").find("rank 0 has given its result") != std::string::npos);
  CHECK_THROWS_AS(h.add(0, "c", {}), failure);
  all_gather done(1);
  done.leave(0);
  CHECK_FALSE(done.deadlock());
}

TEST_CASE("lines") {
  std::vector<std::string> lines;
  line_splitter s([&](const std::string& line) { lines.push_back(line); });
  s.feed("on");
  s.feed("e\r\n\ntwo\nthr");
  CHECK(lines == std::vector<std::string>{"one", "two"});
  s.flush();
  s.flush();
  CHECK(s.last() == "thr");
  s.feed(std::string(10000, 'x'));
  s.flush();
  REQUIRE(lines.size() == 6);
  CHECK(lines[3].size() == line_splitter::longest);
  CHECK(lines[5].size() == 10000 - 2 * line_splitter::longest);
}

TEST_CASE("exit statuses in words") {
  CHECK(describe_status(9) == "killed by SIGKILL");
  CHECK(describe_status(11 | 0x80) == "killed by SIGSEGV");
  CHECK(describe_status(3 << 8) == "exited with code 3");
  CHECK(describe_status(50) == "killed by signal 50");
}

TEST_CASE("every rank gets CPUs of its own, or none") {
  const auto cpus = available_cpus();
  REQUIRE_FALSE(cpus.empty());
  const auto n = cpus.size();
  const auto one_each = assign_cpus(this_hosts_cpus(), n, 1, true);
  std::set<int> used;
  REQUIRE(one_each.cpus.size() == n);
  for (const auto& of_rank : one_each.cpus) {
    REQUIRE(of_rank.size() == 1);
    used.insert(of_rank[0]);
  }
  CHECK(used == std::set<int>(cpus.begin(), cpus.end()));
  CHECK(one_each.available <= n);
  CHECK(one_each.oversubscribed == (n > one_each.available));

  const auto all_in_one = assign_cpus(this_hosts_cpus(), 1, n, true);
  CHECK(all_in_one.cpus.at(0).size() == n);
  const auto unpinned = assign_cpus(this_hosts_cpus(), 1, 1, false);
  CHECK(unpinned.cpus.at(0).empty());
  CHECK_FALSE(unpinned.oversubscribed);
  const auto many = assign_cpus(this_hosts_cpus(), n + 1, 1, true);
  CHECK(many.oversubscribed);
  REQUIRE(many.cpus.size() == n + 1);
  for (const auto& of_rank : many.cpus) CHECK(of_rank.empty());
}

TEST_CASE("control groups: v2 nested, v1, in containers, absent") {
  namespace fs = std::filesystem;
  const test::temporary_folder folder;
  const fs::path& root = folder.path;
  const auto write = [&](const char* path, const char* text) { folder.write(path, text); };
  CHECK(std::isinf(cgroup_cpu_limit(root)));

  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  CHECK(std::isinf(cgroup_cpu_limit(root)));
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  CHECK(cgroup_cpu_limit(root) == doctest::Approx(1.5));
  write("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  CHECK(cgroup_cpu_limit(root) == doctest::Approx(0.5));
  write("proc/self/cgroup", "0::/../elsewhere\n"); // of another namespace
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  CHECK(cgroup_cpu_limit(root) == doctest::Approx(3));

  // v1 in a container: the group is named as the host sees it, and is the mount's root.
  write("proc/self/mountinfo", "31 23 0:28 /docker/1f /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n");
  write("proc/self/cgroup", "5:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n0::/\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  CHECK(std::isinf(cgroup_cpu_limit(root)));
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
  CHECK(cgroup_cpu_limit(root) == doctest::Approx(2.5));
}

TEST_CASE("memory: the bytes that control groups leave, and whether the kernel killed for it") {
  namespace fs = std::filesystem;
  const test::temporary_folder folder;
  const fs::path& root = folder.path;
  const auto write = [&](const char* path, const char* text) { folder.write(path, text); };
  CHECK(available_bytes(root) == 0); // unknown
  write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");
  CHECK(available_bytes(root) == 8000 * 1024);

  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/memory.current", "1000000\n");
  CHECK(available_bytes(root) == 8000 * 1024);
  write("sys/fs/cgroup/a/memory.max", "4194304\n"); // of the parent
  write("sys/fs/cgroup/a/memory.current", "3000000\n");
  CHECK(available_bytes(root) == 4194304 - 3000000);
  write("sys/fs/cgroup/a/memory.stat", "anon 1000000\ninactive_file 500000\n");
  CHECK(available_bytes(root) == 4194304 - 2500000);
  write("sys/fs/cgroup/a/memory.current", "5000000\n"); // more than the limit: nothing is left, but it is known
  CHECK(available_bytes(root) == 1);

  write("sys/fs/cgroup/a/b/memory.events", "low 0\noom 3\noom_kill 2\n");
  const oom_watch v2(root);
  CHECK(v2.verdict().empty());
  write("sys/fs/cgroup/a/memory.events", "oom_kill 9\n"); // of a neighbour
  CHECK(v2.verdict().empty());
  write("sys/fs/cgroup/a/b/memory.events", "low 0\noom 4\noom_kill 3\n");
  CHECK(v2.verdict() == "the kernel ran out of memory (cgroup limit 4 MiB)");
  write("sys/fs/cgroup/a/memory.max", "max\n");
  CHECK(v2.verdict() == "the kernel ran out of memory");

  write("proc/self/mountinfo", "31 23 0:28 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("proc/self/cgroup", "5:memory:/docker/1f\n4:cpu,cpuacct:/docker/1f\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // none
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000000\n");
  CHECK(available_bytes(root) == 8000 * 1024);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000000\n");
  write("sys/fs/cgroup/memory/memory.stat", "cache 1\ninactive_file 7\ntotal_inactive_file 1000000\n");
  CHECK(available_bytes(root) == 5000000);
  const oom_watch v1(root);
  write("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  CHECK(v1.verdict() == "the kernel ran out of memory (cgroup limit 5 MiB)");
}

TEST_CASE("ranks are taken before the one who started them when memory runs out") {
  int own = -9999;
  std::ifstream("/proc/self/oom_score_adj") >> own;
  REQUIRE(own >= -1000);
  process p = start_process("/bin/sh",
                            [](int) {
                              return std::vector<std::string>{"-c", "cat /proc/self/oom_score_adj"};
                            },
                            {}, {});
  char text[64] = {};
  CHECK(::read(p.output.get(), text, sizeof text - 1) > 0);
  CHECK(reap_process(p) == 0);
  CHECK(std::atoi(text) == std::min(own + 500, 1000));
}

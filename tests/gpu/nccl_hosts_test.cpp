// SPDX-License-Identifier: Apache-2.0
//
// Calls of NCCL, recorded by a stand-in for libnccl on an emulated GPU: those with which ranks of several hosts join a
// communicator, one process a rank, as in a run; and those around a copy that fails.
#include "temporary_folder.hpp"
#include "transport.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using regatta::test::temporary_folder;

namespace {

// A rank on a host of its own, which listens on `addresses`. Returns its blob.
struct rank {
  explicit rank(std::uint32_t number, std::vector<const char*> listens)
      : addresses(std::move(listens)),
        t([](std::uint32_t) { return nccl::open_medium(0, 0); },
          [](std::span<const std::uint32_t>, std::vector<std::byte> mine) { return mine; }) {
    world.rank = number;
    world.size = 2;
    world.host_of = host_of;
    world.addresses = addresses.data();
    world.address_count = static_cast<std::uint32_t>(addresses.size());
  }
  static constexpr std::uint32_t host_of[] = {0, 1};
  std::vector<const char*> addresses;
  rg_world world{};
  nccl::transport t;
};

// Calls f() in a child process, because NCCL and the environment have one state a process, and waits for its end.
template <class F> void in_process(F&& f) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      f();
      std::_Exit(0);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::_Exit(1);
    }
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

} // namespace

TEST_CASE("rank 0's id reaches the ranks of other hosts, which join over the interfaces of their own") {
  const temporary_folder s;
  ::setenv("RECORDED_NCCL", (s.path / "calls").c_str(), 1);
  ::unsetenv("NCCL_SOCKET_IFNAME");
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  in_process([&] {
    rank first(0, {"127.0.0.1"});
    const rg_blob id = first.t.listen(first.world);
    if (::write(pipe[1], id.data, id.bytes) != static_cast<ssize_t>(id.bytes)) std::_Exit(2);
    const rg_blob blobs[] = {id, {}};
    first.t.connect(blobs, 1'000'000'000);
    first.t.close(1'000'000'000);
  });
  std::vector<char> id(1000);
  const ssize_t bytes = ::read(pipe[0], id.data(), id.size()); // as the coordinator brings it
  REQUIRE(bytes > 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
  in_process([&] {
    ::setenv("NCCL_SOCKET_IFNAME", "ib0", 1); // of that host's user
    rank second(1, {"127.0.0.1"});
    if (second.t.listen(second.world).bytes != 0) std::_Exit(2);
    const rg_blob blobs[] = {{id.data(), static_cast<std::uint64_t>(bytes)}, {}};
    second.t.connect(blobs, 1'000'000'000);
    second.t.close(1'000'000'000);
  });
  CHECK(s.read("calls") == "made at =lo\n"
                           "0 of 2 joins at =lo with the id made at =lo\n"
                           "finalize\n"
                           "1 of 2 joins at ib0 with the id made at =lo\n"
                           "finalize\n");
}

TEST_CASE("a copy that fails ends the group that it is in, and no other") {
  const temporary_folder s;
  ::setenv("RECORDED_NCCL", (s.path / "calls").c_str(), 1);
  in_process([] {
    const auto m = nccl::open_medium(0, 0);
    const auto fails = [&] {
      float number = 0;
      try {
        m->copy(nullptr, &number, sizeof number);
      } catch (const rg::error&) {
        return true;
      }
      return false;
    };
    m->begin_group();
    if (!fails() || !fails()) std::_Exit(2);
    m->begin_group();
    m->end_group();
  });
  CHECK(s.read("calls") == "{\n}\n{\n}\n");
}

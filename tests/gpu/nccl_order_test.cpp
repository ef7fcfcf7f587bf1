// SPDX-License-Identifier: Apache-2.0
//
// Records the calls of the transport nccl to CUDA and NCCL and checks their order. Needs no GPU.
#include "transport.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include <regatta/collectives.hpp>
#include <regatta/ext/collectives.h>

using namespace nccl;

namespace {

using calls = std::vector<std::string>;

std::string text(rg_fence f) {
  return std::to_string(f);
}

// Records its calls; can be slow or fail, as the test says.
struct recorder : medium {
  struct script {
    calls log;
    std::set<int> busy;      // communicators that are not ready yet
    std::set<rg_fence> open; // fences that have not passed
    std::string broken;      // the error that ready() throws
    int joined = 0;
    rg_fence fences = 1000;
  };
  explicit recorder(script& of) : s(of) {}

  static communicator handle(int n) { return reinterpret_cast<communicator>(static_cast<std::uintptr_t>(n)); }
  static int number(communicator c) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(c)); }
  static std::string at(const void* p) { return std::to_string(reinterpret_cast<std::uintptr_t>(p)); }
  static std::string name(communicator c) { return "c" + std::to_string(number(c)); }

  std::vector<std::byte> make_id() override {
    s.log.push_back("id");
    return std::vector<std::byte>(128);
  }
  communicator join(std::span<const std::byte> id, std::uint32_t size, std::uint32_t rank) override {
    s.log.push_back("join " + std::to_string(id.size()) + " " + std::to_string(rank) + "/" + std::to_string(size));
    return handle(++s.joined);
  }
  bool ready(communicator c) override {
    if (!s.broken.empty()) throw rg::error(RG_E_PEER, s.broken);
    return !s.busy.contains(number(c));
  }
  void finalize(communicator c) override { s.log.push_back("finalize " + name(c)); }
  void destroy(communicator c) noexcept override { s.log.push_back("destroy " + name(c)); }
  void abort(communicator c) noexcept override { s.log.push_back("abort " + name(c)); }
  void begin_group() override { s.log.push_back("{"); }
  void send(communicator c, const void* p, std::uint64_t n, std::uint32_t peer) override {
    s.log.push_back("send " + name(c) + " " + at(p) + "+" + std::to_string(n) + " to " + std::to_string(peer));
  }
  void recv(communicator c, void* p, std::uint64_t n, std::uint32_t peer) override {
    s.log.push_back("recv " + name(c) + " " + at(p) + "+" + std::to_string(n) + " from " + std::to_string(peer));
  }
  // "256+8", or "256>512+8" if the target is elsewhere; what is reduced otherwise than by a sum of floats is named.
  static std::string range(const void* from, const void* to, std::uint64_t n) {
    return at(from) + (from == to ? "" : ">" + at(to)) + "+" + std::to_string(n);
  }
  static std::string range(const void* from, const void* to, elements e) {
    return range(from, to, e.count) +
           (e.reduction == RG_SUM   ? ""
            : e.reduction == RG_MAX ? " max"
                                    : " average") +
           (e.type == RG_F32 ? "" : " of type " + std::to_string(e.type));
  }
  void all_reduce(communicator c, const void* from, void* to, elements e) override {
    s.log.push_back("sum " + name(c) + " " + range(from, to, e));
  }
  void reduce_scatter(communicator c, const void* from, void* to, elements e) override {
    s.log.push_back("scatter " + name(c) + " " + range(from, to, e));
  }
  void all_gather(communicator c, const void* from, void* to, std::uint64_t n) override {
    s.log.push_back("gather " + name(c) + " " + range(from, to, n));
  }
  void reduce(communicator c, const void* from, void* to, elements e, std::uint32_t root) override {
    s.log.push_back("sum " + name(c) + " " + range(from, to, e) + " to " + std::to_string(root));
  }
  void broadcast(communicator c, const void* from, void* to, std::uint64_t n, std::uint32_t root) override {
    s.log.push_back("copy " + name(c) + " " + range(from, to, n) + " from " + std::to_string(root));
  }
  void copy(const void* from, void* to, std::uint64_t n) override { s.log.push_back("move " + range(from, to, n)); }
  void end_group() override { s.log.push_back("}"); }
  void wait_for(rg_fence f) override { s.log.push_back("after " + text(f)); }
  rg_fence record() override {
    s.log.push_back("record " + text(++s.fences));
    return s.fences;
  }
  bool passed(rg_fence f) override { return !s.open.contains(f); }

  script& s;
};

// A connected rank of `size` ranks; the calls of its set-up are removed from the log.
struct fixture {
  explicit fixture(std::uint32_t rank = 0, std::uint32_t size = 2)
      : t([this](std::uint32_t) { return std::make_unique<recorder>(script); },
          [this](std::span<const std::uint32_t> members, const std::vector<std::byte>& mine) {
            script.log.push_back("exchange " + std::to_string(mine.size()) + " bytes among " +
                                 std::to_string(members.size()));
            return std::vector<std::byte>(128);
          }) {
    world.struct_size = sizeof world;
    world.rank = rank;
    world.size = size;
    world.lanes = 4;
    const rg_blob mine = t.listen(world);
    CHECK((mine.bytes == 128) == (rank == 0 && size > 1));
    blobs.resize(size);
    blobs[0] = {id.data(), id.size()};
    t.connect(blobs, 1'000'000'000);
    script.log.clear();
  }
  rg_transfer transfer(std::uintptr_t address, std::uint64_t count, std::uint32_t peer, std::uint64_t cookie,
                       rg_fence after = 0, std::uint32_t lane = 0) {
    rg_transfer x{};
    x.struct_size = sizeof x;
    x.peer = peer;
    x.lane = lane;
    x.buffer = {.region = 1, .type = RG_F32, .offset = 0, .count = count};
    x.bytes = count * sizeof(float);
    x.address = reinterpret_cast<void*>(address);
    x.after = after;
    x.cookie = cookie;
    return x;
  }
  // A collective of `count` floats in place; of its chunk, where it has one.
  rg_collective in_place(std::uint32_t kind, std::uintptr_t address, std::uint64_t count, std::uint64_t cookie,
                         std::uint32_t group = 0, std::uint32_t type = RG_F32) {
    rg_collective c{};
    c.struct_size = sizeof c;
    c.kind = kind;
    c.group = group;
    c.reduction = rg::reduces(kind) ? std::uint32_t{RG_SUM} : 0;
    const rg_buffer whole{.region = 1, .type = type, .offset = 0, .count = count};
    const rg::chunk own = rg::chunk_of(count, nullptr, world.rank, world.size);
    const rg_buffer mine{.region = 1, .type = type, .offset = 0, .count = own.count};
    c.source = kind == RG_OP_ALL_GATHER ? mine : whole;
    c.target = kind == RG_OP_REDUCE_SCATTER ? mine : whole;
    const std::uintptr_t chunk = address + own.first * rg::size_of(type);
    c.source_address = reinterpret_cast<void*>(kind == RG_OP_ALL_GATHER ? chunk : address);
    c.target_address = reinterpret_cast<void*>(kind == RG_OP_REDUCE_SCATTER ? chunk : address);
    c.cookie = cookie;
    return c;
  }
  rg_collective sum(std::uintptr_t address, std::uint64_t count, std::uint64_t cookie, std::uint32_t group = 0) {
    return in_place(RG_OP_ALL_REDUCE, address, count, cookie, group);
  }
  std::vector<rg_completion> poll(std::uint64_t timeout_ns = 0, std::size_t room = 8) {
    std::vector<rg_completion> out(room);
    out.resize(t.poll(timeout_ns, 0, out));
    return out;
  }

  recorder::script script;
  std::array<std::byte, 128> id{};
  std::vector<rg_blob> blobs;
  rg_world world{};
  transport t;
};

} // namespace

TEST_CASE("only rank 0 makes the communicator's id, and everybody joins with it") {
  recorder::script script;
  transport t([&](std::uint32_t) { return std::make_unique<recorder>(script); }, {});
  rg_world world{};
  world.rank = 1;
  world.size = 3;
  CHECK(t.listen(world).bytes == 0);
  const std::array<std::byte, 128> id{};
  const std::array<rg_blob, 3> blobs = {rg_blob{id.data(), id.size()}, {}, {}};
  t.connect(blobs, 1'000'000'000);
  CHECK(script.log == calls{"join 128 1/3"});
}

TEST_CASE("NCCL gets the interfaces of this rank's addresses before it makes an id, unless the user names some") {
  struct watching : recorder {
    using recorder::recorder;
    std::vector<std::byte> make_id() override {
      const char* names = std::getenv("NCCL_SOCKET_IFNAME");
      s.log.push_back(names ? names : "none");
      return recorder::make_id();
    }
  };
  const auto chosen = [](std::vector<const char*> addresses) {
    recorder::script script;
    transport t([&](std::uint32_t) { return std::make_unique<watching>(script); }, {});
    rg_world world{};
    world.size = 2;
    world.addresses = addresses.data();
    world.address_count = static_cast<std::uint32_t>(addresses.size());
    t.listen(world);
    REQUIRE(script.log.size() == 2);
    return script.log[0];
  };
  unsetenv("NCCL_SOCKET_IFNAME");
  CHECK(chosen({}) == "none");
  CHECK(chosen({"203.0.113.1"}) == "none"); // an address for documentation, which no interface has
  CHECK(chosen({"203.0.113.1", "127.0.0.1"}) == "=lo");
  setenv("NCCL_SOCKET_IFNAME", "ib", 1);
  CHECK(chosen({"127.0.0.1"}) == "ib");
  unsetenv("NCCL_SOCKET_IFNAME");
}

TEST_CASE("posts between two polls form one group, in their order, and complete with one fence behind it") {
  fixture f;
  CHECK(f.t.send(f.transfer(64, 10, 1, 5)) == RG_OK);
  CHECK(f.t.recv(f.transfer(256, 20, 1, 6)) == RG_OK);
  CHECK(f.script.log.empty()); // nothing is enqueued outside of poll
  const auto done = f.poll();
  CHECK(f.script.log == calls{"{", "send c1 64+40 to 1", "recv c1 256+80 from 1", "}", "record 1001"});
  REQUIRE(done.size() == 2);
  CHECK(done[0].cookie == 5);
  CHECK(done[1].cookie == 6);
  CHECK(done[1].bytes == 80);
  for (const rg_completion& c : done) {
    CHECK(c.status == RG_OK);
    CHECK(c.fence == 1001);
  }
  f.script.log.clear();
  f.t.send(f.transfer(64, 10, 1, 7));
  CHECK(f.poll().size() == 1);
  CHECK(f.script.log == calls{"{", "send c1 64+40 to 1", "}", "record 1002"});
  CHECK(f.t.counters().bytes_sent == 80);
  CHECK(f.t.counters().bytes_received == 80);
  CHECK(f.t.counters().messages_sent == 2);
}

TEST_CASE("the stream waits for what an operation comes after, before its group and once a fence") {
  fixture f;
  f.t.send(f.transfer(64, 1, 1, 1, 50));
  f.t.recv(f.transfer(128, 1, 1, 2, 50));
  f.t.send(f.transfer(192, 1, 1, 3, 51));
  f.poll();
  CHECK(f.script.log == calls{"after 50", "after 51", "{", "send c1 64+4 to 1", "recv c1 128+4 from 1",
                              "send c1 192+4 to 1", "}", "record 1001"});
}

TEST_CASE("messages and collectives are never in one group, and keep their order") {
  fixture f;
  f.t.send(f.transfer(64, 1, 1, 1));
  f.t.begin(f.sum(256, 8, 2));
  f.t.begin(f.sum(512, 8, 3));
  f.t.recv(f.transfer(128, 1, 1, 4));
  const auto done = f.poll();
  CHECK(f.script.log == calls{"{", "send c1 64+4 to 1", "}", "record 1001", "{", "sum c1 256+8", "sum c1 512+8", "}",
                              "record 1002", "{", "recv c1 128+4 from 1", "}", "record 1003"});
  REQUIRE(done.size() == 4);
  CHECK(done[1].fence == 1002);
  CHECK(done[3].fence == 1003);
  CHECK(f.t.counters().bytes_sent == 4 + 2 * 32); // two ranks: 2 (n - 1) / n of the bytes
}

TEST_CASE("chunks that are equally long go as one collective, others as one a chunk") {
  fixture f(1, 2);
  f.t.begin(f.in_place(RG_OP_REDUCE_SCATTER, 256, 64, 1));
  f.t.begin(f.in_place(RG_OP_ALL_GATHER, 256, 64, 2));
  CHECK(f.poll().size() == 2);
  CHECK(f.script.log == calls{"{", "scatter c1 256>384+32", "gather c1 384>256+128", "}", "record 1001"});
  CHECK(f.t.counters().bytes_sent == 2 * 128);
  f.script.log.clear();
  f.t.begin(f.in_place(RG_OP_REDUCE_SCATTER, 256, 40, 3)); // chunks begin at multiples of 16 elements: 16 and 24
  f.t.begin(f.in_place(RG_OP_ALL_GATHER, 256, 40, 4));
  f.t.begin(f.in_place(RG_OP_REDUCE_SCATTER, 256, 7, 5)); // the first chunk is empty
  CHECK(f.poll().size() == 3);
  CHECK(f.script.log == calls{"{", "sum c1 256+16 to 0", "sum c1 320+24 to 1", "copy c1 256+64 from 0",
                              "copy c1 320+96 from 1", "sum c1 256+7 to 1", "}", "record 1002"});
  f.script.log.clear();
  f.t.begin(f.in_place(RG_OP_ALL_GATHER, 256, 33, 6, 0, RG_U8)); // of any element type
  CHECK(f.poll().size() == 1);
  CHECK(f.script.log == calls{"{", "copy c1 256+16 from 0", "copy c1 272+17 from 1", "}", "record 1003"});
  f.script.log.clear();
  rg_collective c = f.in_place(RG_OP_REDUCE_SCATTER, 256, 12, 7);
  const std::array<std::uint64_t, 2> counts = {6, 6}; // equal by counts, not in place
  c.counts = counts.data();
  c.target.count = 6;
  c.target_address = reinterpret_cast<void*>(std::uintptr_t{1024});
  f.t.begin(c);
  CHECK(f.poll().size() == 1);
  CHECK(f.script.log == calls{"{", "scatter c1 256>1024+6", "}", "record 1004"});
}

TEST_CASE("other types and reductions; those that NCCL lacks are refused") {
  fixture f;
  rg_collective c = f.in_place(RG_OP_ALL_REDUCE, 256, 8, 1, 0, RG_BF16);
  c.reduction = RG_AVERAGE;
  c.target_address = reinterpret_cast<void*>(std::uintptr_t{512});
  f.t.begin(c);
  CHECK(f.poll().size() == 1);
  CHECK(f.script.log == calls{"{", "sum c1 256>512+8 average of type 3", "}", "record 1001"});
  CHECK(f.t.offers(RG_OP_REDUCE, RG_MAX, RG_I64, 0));
  CHECK(!f.t.offers(RG_OP_REDUCE, RG_SUM, RG_U4, 0));
  CHECK(!f.t.offers(RG_OP_ALL_REDUCE, RG_SUM, RG_F32, RG_BF16));
  CHECK(!f.t.offers(RG_OP_BARRIER, 0, RG_U8, 0));
  c.source.type = c.target.type = RG_U4;
  CHECK_THROWS_AS(f.t.begin(c), rg::error);
}

TEST_CASE("gather, scatter and all-to-all are messages, and a copy of the rank's own chunk") {
  fixture f(1, 3);
  const auto call = [&](std::uint32_t kind, std::uint64_t from, std::uint64_t to, std::uint32_t root) {
    rg_collective c = f.in_place(kind, 256, 0, 1, 0, RG_U8);
    c.source.count = from;
    c.target.count = to;
    c.target_address = reinterpret_cast<void*>(std::uintptr_t{1024});
    c.root = root;
    return c;
  };
  f.t.begin(call(RG_OP_ALL_TO_ALL, 30, 30, 0));
  f.poll();
  CHECK(f.script.log == calls{"{", "send c1 256+10 to 0", "recv c1 1024+10 from 0", "send c1 276+10 to 2",
                              "recv c1 1044+10 from 2", "move 266>1034+10", "}", "record 1001"});
  f.script.log.clear();
  f.t.begin(call(RG_OP_GATHER, 16, 48, 1));
  f.t.begin(call(RG_OP_GATHER, 16, 0, 2));
  f.poll();
  CHECK(f.script.log == calls{"{", "recv c1 1024+16 from 0", "recv c1 1056+16 from 2", "move 256>1040+16",
                              "send c1 256+16 to 2", "}", "record 1002"});
  f.script.log.clear();
  f.t.begin(call(RG_OP_SCATTER, 48, 16, 1));
  f.t.begin(call(RG_OP_SCATTER, 0, 16, 0));
  f.poll();
  CHECK(f.script.log == calls{"{", "send c1 256+16 to 0", "send c1 288+16 to 2", "move 272>1024+16",
                              "recv c1 1024+16 from 0", "}", "record 1003"});
}

TEST_CASE("a broadcast is from a place among the members, and behind what it waits for") {
  fixture f(2, 3);
  const std::array<std::uint32_t, 2> some = {0, 2};
  const std::uint32_t group = f.t.split(some);
  f.script.log.clear();
  rg_collective c = f.in_place(RG_OP_BROADCAST, 64, 5, 1, group);
  c.root = 1; // index in the group: rank 2
  c.after = 50;
  f.t.begin(c);
  CHECK(f.poll().size() == 1);
  CHECK(f.script.log == calls{"after 50", "{", "copy c2 64+20 from 1", "}", "record 1001"});
  CHECK(f.t.counters().bytes_sent == 20);
  c.root = 2;
  CHECK_THROWS_AS(f.t.begin(c), rg::error);
}

TEST_CASE("a group that is not in the stream yet holds back its completions and the next group") {
  fixture f;
  f.script.busy = {1};
  f.t.send(f.transfer(64, 1, 1, 1));
  CHECK(f.poll().empty());
  f.t.send(f.transfer(128, 1, 1, 2));
  CHECK(f.poll(1'000'000).empty()); // waits until the timeout
  CHECK(f.script.log == calls{"{", "send c1 64+4 to 1", "}"});
  f.script.busy.clear();
  const auto done = f.poll();
  CHECK(f.script.log ==
        calls{"{", "send c1 64+4 to 1", "}", "record 1001", "{", "send c1 128+4 to 1", "}", "record 1002"});
  REQUIRE(done.size() == 2);
  CHECK(done[0].fence == 1001);
  CHECK(done[1].fence == 1002);
}

TEST_CASE("completions that find no room come with the next polls") {
  fixture f;
  for (std::uint64_t i = 0; i < 5; ++i) f.t.send(f.transfer(64, 1, 1, i));
  std::vector<std::uint64_t> cookies;
  for (int i = 0; i < 3; ++i)
    for (const rg_completion& c : f.poll(0, 2)) cookies.push_back(c.cookie);
  CHECK(cookies == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("empty messages complete without a call of NCCL") {
  fixture f;
  f.t.send(f.transfer(64, 0, 1, 1));
  CHECK(f.poll().size() == 1);
  CHECK(f.script.log == calls{"record 1001"});
}

TEST_CASE("a second lane is refused: NCCL would match its messages with those of the first") {
  fixture f;
  f.t.send(f.transfer(64, 1, 1, 1, 0, 2));
  try {
    f.t.recv(f.transfer(64, 1, 1, 2, 0, 3));
    FAIL("taken");
  } catch (const rg::error& e) {
    CHECK(e.status() == RG_E_CONFIG);
    CHECK(std::string(e.what()).find("lanes 2 and 3") != std::string::npos);
  }
}

TEST_CASE("a group of all is the communicator itself; others get one, its id sent by the first member") {
  SUBCASE("everybody") {
    fixture f(0, 2);
    const std::array<std::uint32_t, 2> all = {0, 1};
    CHECK(f.t.split(all) == 0);
    CHECK(f.script.log.empty());
  }
  SUBCASE("the first of two of three") {
    fixture f(1, 3);
    const std::array<std::uint32_t, 2> some = {1, 2};
    CHECK(f.t.split(some) == 1);
    CHECK(f.script.log == calls{"id", "exchange 128 bytes among 2", "join 128 0/2"});
    f.script.log.clear();
    f.t.begin(f.sum(64, 4, 1, 1));
    CHECK(f.poll().size() == 1);
    CHECK(f.script.log == calls{"{", "sum c2 64+4", "}", "record 1001"});
  }
  SUBCASE("the other one") {
    fixture f(2, 3);
    const std::array<std::uint32_t, 2> some = {1, 2};
    CHECK(f.t.split(some) == 1);
    CHECK(f.script.log == calls{"exchange 0 bytes among 2", "join 128 1/2"});
  }
  SUBCASE("no member") {
    fixture f(0, 3);
    const std::array<std::uint32_t, 2> some = {1, 2};
    CHECK_THROWS_AS(f.t.split(some), rg::error);
  }
}

TEST_CASE("a peer that is gone ends the poll with its error, and every communicator with an abort") {
  fixture f;
  f.t.send(f.transfer(64, 1, 1, 1));
  f.script.open = {1001};
  CHECK(f.poll().size() == 1); // in the stream, but not done
  f.script.log.clear();
  f.script.broken = "remote process exited";
  CHECK_THROWS_WITH_AS(f.poll(), "remote process exited", rg::error);
  CHECK(f.script.log == calls{"abort c1"});
  CHECK(f.t.send(f.transfer(64, 1, 1, 2)) == RG_E_CANCELLED);
  CHECK(f.poll().empty()); // does not throw again
}

TEST_CASE("once everything has happened, nobody is asked whether the peers are well") {
  fixture f;
  f.t.send(f.transfer(64, 1, 1, 1));
  f.poll();
  f.script.broken = "the peer has left, as it may";
  CHECK_NOTHROW(f.poll());
}

TEST_CASE("cancel aborts, then ends what was posted and what was on its way") {
  fixture f;
  f.script.busy = {1};
  f.t.send(f.transfer(64, 1, 1, 1));
  CHECK(f.poll().empty());
  f.t.recv(f.transfer(64, 1, 1, 2));
  f.script.log.clear();
  f.t.cancel(1);
  CHECK(f.script.log == calls{"abort c1"});
  const auto done = f.poll();
  REQUIRE(done.size() == 2);
  for (const rg_completion& c : done) CHECK(c.status == RG_E_CANCELLED);
  CHECK(done[0].cookie == 1);
  CHECK(done[1].cookie == 2);
}

TEST_CASE("ranks that do not come are waited for as long as was said, and no longer") {
  recorder::script script;
  script.busy = {1};
  transport t([&](std::uint32_t) { return std::make_unique<recorder>(script); }, {});
  rg_world world{};
  world.size = 2;
  const rg_blob mine = t.listen(world);
  const std::array<rg_blob, 2> blobs = {mine, rg_blob{}};
  CHECK_THROWS_AS(t.connect(blobs, 2'000'000), rg::error);
  CHECK(script.log == calls{"id", "join 128 0/2", "abort c1"});
}

TEST_CASE("close lets everything happen, then leaves with the others, and destroys nothing twice") {
  recorder::script script;
  {
    transport t([&](std::uint32_t) { return std::make_unique<recorder>(script); }, {});
    rg_world world{};
    world.size = 2;
    const rg_blob mine = t.listen(world);
    const std::array<rg_blob, 2> blobs = {mine, rg_blob{}};
    t.connect(blobs, 1'000'000'000);
    script.log.clear();
    t.close(1'000'000'000);
  }
  CHECK(script.log == calls{"finalize c1", "destroy c1"});
}

TEST_CASE("close gives up in time where something never happens") {
  fixture f;
  f.script.open = {1001};
  f.t.send(f.transfer(64, 1, 1, 1));
  f.poll();
  f.script.log.clear();
  rg_status status = RG_OK;
  try {
    f.t.close(2'000'000);
  } catch (const rg::error& e) {
    status = e.status();
  }
  CHECK(status == RG_TIMEOUT);
  CHECK(f.script.log == calls{"abort c1"});
}

TEST_CASE("a poll without an end is ended by wake, before it or during it") {
  fixture f;
  f.t.wake();
  CHECK(f.poll(UINT64_MAX).empty());
  std::thread other([&] { f.t.wake(); });
  CHECK(f.poll(UINT64_MAX).empty());
  other.join();
}

TEST_CASE("one rank alone needs no communicator") {
  fixture f(0, 1);
  const std::array<std::uint32_t, 1> alone = {0};
  CHECK(f.t.split(alone) == 0);
  f.t.begin(f.sum(64, 4, 1));
  CHECK(f.poll().size() == 1);
  CHECK(f.script.log == calls{"record 1001"});
  rg_collective apart = f.sum(64, 4, 2);
  apart.target_address = reinterpret_cast<void*>(std::uintptr_t{128});
  f.t.begin(apart);
  CHECK(f.poll().size() == 1);
  CHECK(f.script.log == calls{"record 1001", "move 64>128+16", "record 1002"});
  f.t.close(1'000'000);
}

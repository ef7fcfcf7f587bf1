// SPDX-License-Identifier: Apache-2.0
//
// The shipped transports allocate nothing for a message or an all-reduce once as many have been pending before. (The
// counter is preloaded: LD_PRELOAD in CMakeLists.txt.)
#include "check/harness/allocation_watch.hpp"
#include "check/harness/rank_group.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include <regatta/ext/collectives.h>

using namespace regatta;
using namespace regatta::conformance;

namespace {

// A queue may still grow if more operations are pending than before; expected for less than one message in a hundred.
constexpr std::uint64_t few = 3 * 10 * 7 * 8 / 100;

// Returns the number of blocks that the code in `files` allocates while messages of all kinds are exchanged.
std::uint64_t blocks_of(const std::string& id, const std::vector<std::filesystem::path>& files,
                        const std::map<std::string, nlohmann::json>& parameters = {}) {
  const auto plugins = registry::of_files(files);
  const subject which = {.file = plugins.find(kind::transport, id).file,
                         .plugins = &plugins,
                         .tested = &plugins.find(kind::transport, id),
                         .parameters = parameters,
                         .other_files = {},
                         .seed = 1};
  const allocation_watch watch(files);
  const std::uint64_t begun = watch.blocks();
  std::atomic<std::uint64_t> before{0}, after{0};
  run_ranks(which, {.ranks = 3, .lanes = 2}, [&](member& self) {
    constexpr std::uint64_t most = MiB + 12;
    const std::uint32_t next = (self->rank() + 1) % 3, last = (self->rank() + 2) % 3;
    const memory from = self->allocate(most), to = self->allocate(most), sum = self->allocate(most);
    const auto* collectives = self->extension<rg_collectives>(RG_EXT_COLLECTIVES);
    const std::uint32_t all[] = {0, 1, 2};
    std::uint32_t group = 0;
    if (collectives) self->check(collectives->split(self->self(), all, 3, &group), "split");
    const auto send_and_receive = [&] {
      for (const std::uint64_t bytes : {0ul, 8ul, 100ul, 4096ul, 40'004ul, 300'000ul, most}) {
        std::vector<std::uint64_t> pending;
        for (int k = 0; k < 4; ++k) {
          pending.push_back(self->recv(last, 0, to, 0, bytes));
          pending.push_back(self->recv(last, 1, sum, 0, bytes / 4 * 4, RG_TRANSFER_ADD));
          pending.push_back(self->send(next, 0, from, 0, bytes));
          pending.push_back(self->send(next, 1, from, 0, bytes / 4 * 4));
        }
        self->finish(pending);
        if (!collectives) continue;
        auto all_reduce = rg::make_versioned<rg_collective>();
        all_reduce.kind = RG_OP_ALL_REDUCE;
        all_reduce.reduction = RG_SUM;
        all_reduce.group = group;
        all_reduce.source = all_reduce.target = {0, RG_F32, 0, bytes / 4};
        self->finish(self->collective(all_reduce, sum));
      }
    };
    for (int k = 0; k < 10; ++k) send_and_receive();
    self.barrier();
    if (self->rank() == 0) before = watch.blocks();
    self.barrier();
    for (int k = 0; k < 10; ++k) send_and_receive();
    self.barrier();
    if (self->rank() == 0) after = watch.blocks();
    self.barrier();
  });
  CHECK(before > begun); // the counter works
  return after - before;
}

std::filesystem::path file(const char* name) {
  return std::filesystem::path(REGATTA_PLUGINS) / name;
}

} // namespace

TEST_CASE("messages allocate nothing") {
  try {
    allocation_watch{{}};
  } catch (const skipped& why) {
    MESSAGE("skipped: ", why.what());
    return;
  }
  CHECK(blocks_of("tcp", {file("tcp.so")}) <= few);
  CHECK(blocks_of("shm", {file("shm.so")}) <= few);
  CHECK(blocks_of("auto", {file("auto_transport.so"), file("shm.so"), file("tcp.so")}) <= few);
  CHECK(blocks_of("shaped", {file("shaped.so"), file("tcp.so")}, {{"bandwidth", 100e9}}) <= few);
}

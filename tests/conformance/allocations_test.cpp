// SPDX-License-Identifier: Apache-2.0
//
// A message allocates nothing in the transports of the product, nor does an all-reduce of theirs: once the memory for as
// many as are under way is there, as many go on without asking for any. (The counter comes before all libraries:
// LD_PRELOAD, in CMakeLists.txt.)
#include "check/harness/allocation_watch.hpp"
#include "check/harness/rank_group.hpp"

#include <doctest/doctest.h>

#include <atomic>

using namespace regatta;
using namespace regatta::conformance;

namespace {

// A queue may still have to grow where ranks wait for each other as never before: not for one message in a hundred.
constexpr std::uint64_t few = 3 * 10 * 7 * 8 / 100;

// Blocks that the code of the transport, and of those inside it, asks for while messages of all kinds cross.
std::uint64_t blocks_of(const std::string& id, const std::vector<std::filesystem::path>& files,
                        const std::map<std::string, nlohmann::json>& parameters = {}) {
  const auto plugins = registry::of_files(files);
  const subject which = {.file = plugins.find(kind::transport, id).file,
                         .plugins = &plugins,
                         .what = &plugins.find(kind::transport, id),
                         .parameters = parameters,
                         .others = {},
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
    const auto exchange = [&] {
      for (const std::uint64_t bytes : {0ul, 8ul, 100ul, 4096ul, 40'004ul, 300'000ul, most}) {
        std::vector<std::uint64_t> under_way;
        for (int k = 0; k < 4; ++k) {
          under_way.push_back(self->recv(last, 0, to, 0, bytes));
          under_way.push_back(self->recv(last, 1, sum, 0, bytes / 4 * 4, RG_TRANSFER_ADD));
          under_way.push_back(self->send(next, 0, from, 0, bytes));
          under_way.push_back(self->send(next, 1, from, 0, bytes / 4 * 4));
        }
        self->finish(under_way);
        if (collectives) self->finish(self->collective(&rg_collectives::all_reduce, group, sum, 0, RG_F32, bytes / 4));
      }
    };
    for (int k = 0; k < 10; ++k) exchange();
    self.meet();
    if (self->rank() == 0) before = watch.blocks();
    self.meet();
    for (int k = 0; k < 10; ++k) exchange();
    self.meet();
    if (self->rank() == 0) after = watch.blocks();
    self.meet();
  });
  CHECK(before > begun); // it counts at all
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

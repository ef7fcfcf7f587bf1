// SPDX-License-Identifier: Apache-2.0
//
// A transport leaves no process, segment, file, descriptor or thread behind, even if its ranks are killed. A transport
// that connects no ranks works for one rank, and rejects peers.
#include "check/harness/rank_group.hpp"
#include "check/harness/resource_snapshot.hpp"

#include <chrono>
#include <csignal>
#include <thread>

#include <sys/prctl.h>
#include <unistd.h>

namespace regatta::conformance {
namespace {

void talk(member& self) {
  const memory m = self->allocate(1 << 20);
  const std::uint32_t peer = 1 - self->rank();
  const std::uint64_t sent = self->send(peer, 0, m, 0, 1 << 19);
  self->finish(self->recv(peer, 0, m, 1 << 19, 1 << 19));
  self->finish(sent);
}

void nothing_stays(const subject& which) {
  prctl(PR_SET_CHILD_SUBREAPER, 1); // a process that detaches from its parent becomes a child of this one
  run_ranks(which, {}, talk);       // creates resources that stay for the whole process
  const remains before = remains::now();
  run_ranks(which, {}, talk);
  run_ranks(which, {.kind = as::processes}, talk);
  before.expect_nothing_new();
  // Kill both ranks at once, in the middle of a message.
  run(which, {.kind = as::processes, .close = false}, [](member& self) {
    const memory m = self->allocate(32 << 20);
    const std::uint32_t peer = 1 - self->rank();
    self->send(peer, 0, m, 0, 32 << 20);
    self->poll(0);
    self.meet();
    kill(getpid(), SIGKILL);
  });
  before.expect_nothing_new();
}

// ------------------------------------------------------------------------------------------------- no peers at all ---

void need_unconnected(const subject& which) {
  if (!(caps_of(which).flags & RG_CAP_NONE)) throw skipped("it connects ranks");
}

void alone(const subject& which) {
  need_unconnected(which);
  endpoint e(which, 0, 1, 1);
  e.connect({e.listen()});
  require(e.poll(0) == 0, "something completes out of nothing");
  e.wake();
  require(e.poll(UINT64_MAX) == 0, "something completes out of nothing");
  std::thread waker([&] { e.wake(); });
  e.poll(UINT64_MAX);
  waker.join();
  e.close();
}

void no_peers(const subject& which) {
  need_unconnected(which);
  endpoint e(which, 0, 2, 1);
  rg_blob blob{};
  require(e.try_listen(blob) < 0, "a world with peers is accepted");
  require(!e.last_error().empty(), "and no word is said");
}

} // namespace

const std::vector<test>& leftover_tests() {
  static const std::vector<test> all = {
      {"leftovers",
       "nothing stays when ranks end, by close or by SIGKILL: no process, segment, file, descriptor, thread",
       nothing_stays},
  };
  return all;
}

const std::vector<test>& unconnected_tests() {
  static const std::vector<test> all = {
      {"alone", "a rank alone can poll, is woken, and closes", alone},
      {"no-peers", "a world with peers is refused with a text", no_peers},
  };
  return all;
}

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
//
// A transport leaves no process, segment, file, descriptor or thread behind, even if its ranks are killed.
#include "check/harness/rank_group.hpp"
#include "check/harness/resource_snapshot.hpp"

#include <csignal>

#include <sys/prctl.h>
#include <unistd.h>

namespace regatta::conformance {
namespace {

void exchange_once(member& self) {
  self->exchange(1 - self->rank(), self->allocate(2 * MiB), MiB);
}

void leaks(const subject& which) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);    // a process that detaches from its parent becomes a child of this one
  run_ranks(which, {}, exchange_once); // creates resources that stay for the whole process
  const resource_snapshot before = resource_snapshot::take();
  run_ranks(which, {}, exchange_once);
  run_ranks(which, {.kind = ranks_as::processes}, exchange_once);
  before.expect_no_leaks();
  // Kill both ranks at once, in the middle of a message.
  errors_of_ranks(which, {.kind = ranks_as::processes, .close = false}, [](member& self) {
    const memory m = self->allocate(32 << 20);
    const std::uint32_t peer = 1 - self->rank();
    self->send(peer, 0, m, 0, 32 << 20);
    self->poll(0);
    self.barrier();
    kill(getpid(), SIGKILL);
  });
  before.expect_no_leaks();
}

} // namespace

std::vector<test> leak_tests() {
  return {
      {"leaks",
       "after close() or SIGKILL of all ranks no process, segment, file, descriptor, mapping or thread is left", leaks},
  };
}

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
//
// The threads of a block: contexts that take turns, each of which runs until it calls meet(). Cooperation of threads is
// as on a GPU, but in a fixed order.
#include "kernels/launch.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <ucontext.h>

namespace cudnn {
namespace {

struct teammates {
  static constexpr std::size_t stack_bytes = std::size_t{256} << 10;
  struct mate {
    ucontext_t context;
    std::unique_ptr<unsigned char[]> stack;
    bool done;
  };
  ucontext_t leader;
  std::array<mate, team_threads> mates;
  const std::function<void(index_t)>* work;
  index_t turn;
};
thread_local std::unique_ptr<teammates> here;
thread_local std::array<unsigned char, 8 * team_threads> memory;

void begin() {
  (*here->work)(here->turn);
  here->mates[here->turn].done = true; // continues in uc_link, the leader
}

} // namespace

void team(const std::function<void(index_t)>& f) {
  if (team_threads == 1) return f(0);
  if (!here) {
    here = std::make_unique<teammates>();
    for (auto& m : here->mates) m.stack = std::make_unique<unsigned char[]>(teammates::stack_bytes);
  }
  teammates& t = *here;
  t.work = &f;
  for (auto& m : t.mates) {
    getcontext(&m.context);
    m.context.uc_stack.ss_sp = m.stack.get();
    m.context.uc_stack.ss_size = teammates::stack_bytes;
    m.context.uc_link = &t.leader;
    m.done = false;
    makecontext(&m.context, &begin, 0);
  }
  for (index_t done = 0; done < team_threads;) {
    done = 0;
    for (t.turn = 0; t.turn < team_threads; ++t.turn) {
      if (!t.mates[t.turn].done) swapcontext(&t.leader, &t.mates[t.turn].context);
      done += t.mates[t.turn].done;
    }
    if (done > 0 && done < team_threads) { // on a GPU this is a deadlock or undefined
      std::fputs("the threads of a block did not all meet\n", stderr);
      std::abort();
    }
  }
}

void meet() {
  if (team_threads == 1) return;
  swapcontext(&here->mates[here->turn].context, &here->leader);
}

unsigned char* shared() {
  return memory.data();
}

} // namespace cudnn

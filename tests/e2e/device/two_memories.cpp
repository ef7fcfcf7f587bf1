// SPDX-License-Identifier: Apache-2.0
//
// A strategy for tests that confuses device memory with host memory, in the way that `what` selects. Without a device
// it works.
#include <regatta/strategy.hpp>

namespace {

struct two_memories {
  struct parameters {
    std::string what = "nothing";
  };
  static constexpr auto fields =
      rg::fields(rg::field("what", &parameters::what, "the mistake")
                     .one_of("nothing", "copy", "add", "rows", "apply", "norm", "to_oneself", "look", "across"));

  static rg_plan plan(const parameters&, const rg_cluster&) { return {.struct_size = sizeof(rg_plan), .lanes = 1}; }
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t, std::uint32_t) { return false; }

  two_memories(rg::comm& c, const parameters& p)
      : comm(c), what(p.what), here(c.alloc_on_host(16)), there(c.alloc(16)), total(c.alloc_on_host(2, RG_F64)),
        numbers(c.alloc(16, RG_I64)) {
    c.own(c.whole(), rg::role::worker);
  }

  void begin_step(std::uint64_t) {}
  rg::task<> end_step(std::uint64_t step) {
    if (what == "copy") co_await comm.copy(there, here);
    if (what == "add") co_await comm.axpy(here, 1, there);
    if (what == "rows") co_await comm.gather(there, there, numbers);
    if (what == "apply") co_await comm.apply(0, here, step, rg::role::worker);
    if (what == "norm") co_await comm.norm(total, rg::role::worker);
    if (what == "across") co_await comm.send(comm.rank() ^ 1, here);
    if (what == "look") comm.elements<float>(there)[0] = 1;
    if (what == "to_oneself") {
      auto out = comm.send(comm.rank(), here);
      co_await comm.recv(comm.rank(), there);
      co_await out;
    }
    co_await comm.apply(0, comm.gradients(comm.whole()), step, rg::role::worker);
  }

  rg::comm& comm;

private:
  std::string what;
  rg_buffer here, there, total, numbers;
};

} // namespace

RG_PLUGIN("two_memories", "0.1.0", rg::strategy<two_memories>("two_memories", "mistakes one memory for another"))

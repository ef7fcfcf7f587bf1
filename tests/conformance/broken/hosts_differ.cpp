// SPDX-License-Identifier: Apache-2.0
//
// Mistake: each host's first worker adds up the gradients of as many workers as there are on the first host, and
// RG_PLAN_EQUAL_HOSTS is not declared. Caught by test `hosts`.
#include <regatta/strategy.hpp>

#include <algorithm>

namespace {

struct hosts_differ {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS;
    plan.lanes = 1;
    return plan;
  }
  hosts_differ(rg::comm& c, const parameters&) : comm(c), total(c.alloc(2, RG_F64)), theirs(c.alloc(c.arena().count)) {
    const std::uint32_t* const hosts = c.cluster().host_of;
    on_a_host = static_cast<std::uint32_t>(std::count(hosts, hosts + c.workers(), hosts[0]));
    comm.own(comm.whole(), rg::role::worker);
  }
  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradients = comm.gradients(comm.whole());
    const std::uint32_t me = comm.rank(), n = comm.workers(), leader = me - me % on_a_host;
    if (me != leader) {
      co_await comm.send(leader, gradients);
      co_await comm.recv(leader, gradients);
    } else {
      for (std::uint32_t w = me + 1; w < me + on_a_host; ++w) co_await add(w);
      for (std::uint32_t w = on_a_host; me == 0 && w < n; w += on_a_host) co_await add(w);
      if (me != 0) co_await comm.send(0, gradients);
      if (me != 0) co_await comm.recv(0, gradients);
      for (std::uint32_t w = on_a_host; me == 0 && w < n; w += on_a_host) co_await comm.send(w, gradients);
      for (std::uint32_t w = me + 1; w < me + on_a_host; ++w) co_await comm.send(w, gradients);
    }
    co_await comm.apply(0, gradients, step, rg::role::worker);
    if (!comm.deferred()) co_return;
    co_await comm.norm(total, rg::role::worker);
    co_await comm.commit(total, step, rg::role::worker);
  }
  rg::comm& comm;

private:
  rg::task<> add(std::uint32_t w) {
    co_await comm.recv(w, theirs);
    co_await comm.axpy(comm.gradients(comm.whole()), 1, theirs);
  }
  std::uint32_t on_a_host = 1; // workers
  rg_buffer total, theirs;
};

} // namespace

RG_PLUGIN("hosts_differ", "1.0", rg::strategy<hosts_differ>("hosts_differ", "broken: needs equal hosts, unsaid"))

// SPDX-License-Identifier: Apache-2.0
//
// Strategies that fail before they wait for anything, that ignore an error, or that train no worker.
#include <regatta/strategy.hpp>

#include <stdexcept>
#include <string>

namespace {

rg_plan with_flags(std::uint32_t flags) {
  rg_plan plan{};
  plan.flags = flags;
  plan.lanes = 1;
  return plan;
}

// Every worker trains alone, until one activity fails: from the start, or from one step on.
struct fails_at_once {
  struct parameters {
    std::string where = "end_step", how = "send";
    std::int64_t from = 0;
  };
  static constexpr auto fields =
      rg::fields(rg::field("where", &parameters::where, "the activity that fails")
                     .one_of("own_rows", "begin_step", "end_step", "serve", "finish", "pull_rows"),
                 rg::field("how", &parameters::how, "an operation that is refused, or a throw").one_of("send", "throw"),
                 rg::field("from", &parameters::from, "first step that fails"));

  static rg_plan plan(const parameters& p, const rg_cluster&) {
    return with_flags(RG_PLAN_ROWS | (p.where == "serve" ? RG_PLAN_SERVERS : 0));
  }

  fails_at_once(rg::comm& c, const parameters& p) : comm(c), p_(p), some_(c.alloc(16)) {
    if (!comm.is_worker()) return;
    comm.own(comm.whole(), rg::role::worker);
    const std::uint64_t shard = p_.where == "own_rows" ? 1 : 0; // of one
    for (std::uint32_t t = 0; t < comm.tables(); ++t) comm.own_rows(t, rg::role::worker, 1, shard);
  }
  rg::task<> begin_step(std::uint64_t step, rg::step_rows rows) {
    if (fails("begin_step", step)) co_await fail();
    co_await pull(rows);
  }
  rg::task<> end_step(std::uint64_t step) {
    if (fails("end_step", step)) co_await fail();
    co_await comm.apply(0, comm.gradients(comm.whole()), step, rg::role::worker);
  }
  rg::task<> serve() {
    if (fails("serve", 0)) co_await fail();
  }
  rg::task<> finish() {
    if (fails("finish", 0)) co_await fail();
  }
  rg::task<> pull_rows(rg::step_rows rows) {
    if (fails("pull_rows", 0)) co_await fail();
    co_await pull(rows);
  }

  rg::comm& comm;

private:
  bool fails(const std::string& where, std::uint64_t step) const {
    return p_.where == where && step >= static_cast<std::uint64_t>(p_.from);
  }
  rg::operation fail() {
    if (p_.how == "throw") throw std::runtime_error("it was asked to fail");
    return comm.send(99, some_);
  }
  rg::task<> pull(rg::step_rows rows) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) co_await comm.rows_show(t, rows[t].size());
  }

  parameters p_;
  rg_buffer some_;
};

// All gradients go to worker 0 and come back as a sum. Defect: no status of a send is read.
struct reads_no_status {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) { return with_flags(RG_PLAN_SYNCHRONOUS); }
  reads_no_status(rg::comm& c, const parameters&) : comm(c), copy_(c.alloc(c.arena().count)) {
    comm.own(comm.whole(), rg::role::worker);
  }
  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer mine = comm.gradients(comm.whole());
    const std::uint32_t peer = 1 - comm.rank();
    {
      const rg::operation unread = comm.send(peer, mine); // the operation goes on without its owner
    }
    co_await comm.recv(peer, copy_);
    co_await comm.after(1'000'000); // the send is over by now
    co_await comm.axpy(mine, 1, copy_);
    co_await comm.apply(0, mine, step, rg::role::worker);
  }
  rg::comm& comm;

private:
  rg_buffer copy_;
};

// Says that it is synchronous, and sends nothing. All workers keep the same weights, which move, or do not.
template <bool moves> struct silent {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) { return with_flags(RG_PLAN_SYNCHRONOUS); }
  silent(rg::comm& c, const parameters&) : comm(c) { comm.own(comm.whole(), rg::role::worker); }
  rg::task<> end_step(std::uint64_t) {
    if (moves) co_await comm.scale(comm.weights(comm.whole()), 0.99);
  }
  rg::comm& comm;
};

// Defect: host code that writes outside of the given buffer.
struct writes_outside {
  struct parameters {
    std::string where = "behind";
  };
  static constexpr auto fields =
      rg::fields(rg::field("where", &parameters::where, "of its buffer or a tensor's padding")
                     .one_of("behind", "before", "padding"));
  static rg_plan plan(const parameters&, const rg_cluster&) { return with_flags(RG_PLAN_SYNCHRONOUS | RG_PLAN_BYTES); }
  writes_outside(rg::comm& c, const parameters& p) : comm(c), p_(p), own_(c.alloc(100)) {
    comm.own(comm.whole(), rg::role::worker);
  }
  rg::task<> end_step(std::uint64_t step) {
    if (p_.where == "padding") {
      const rg_arena& arena = comm.arena();
      for (std::uint32_t i = 0; i < arena.slice_count; ++i) {
        const std::uint64_t used = rg::storage_of(comm.tensor_of(arena.slices[i]));
        if (used < arena.slices[i].count)
          *comm.template pointer<float>(comm.weights({arena.slices[i].first + used, 1})) = 1;
      }
    } else {
      float* const data = comm.template pointer<float>(own_);
      data[p_.where == "behind" ? 103 : -1] = 1;
    }
    co_await comm.apply(0, comm.gradients(comm.whole()), step, rg::role::worker);
  }
  rg::comm& comm;

private:
  parameters p_;
  rg_buffer own_;
};

} // namespace

RG_PLUGIN("broken_failing", "1.0",
          rg::strategy<fails_at_once>("fails_at_once", "broken: an activity fails before it waits for anything"),
          rg::strategy<reads_no_status>("reads_no_status", "broken: looks at no send's end"),
          rg::strategy<silent<false>>("does_nothing", "broken: neither sends nor updates"),
          rg::strategy<silent<true>>("sends_nothing", "broken: moves the weights without a message"),
          rg::strategy<writes_outside>("writes_outside", "broken: writes outside of its buffer"))

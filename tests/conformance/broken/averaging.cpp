// SPDX-License-Identifier: Apache-2.0
//
// Workers train alone and average their weights through worker 0 every four steps and at the end: a sound strategy, and
// some with one mistake each.
#include <regatta/strategy.hpp>

namespace {

struct sound {
  static constexpr bool never_sends = false, at_the_end_only = false, leaves_out_a_tensor = false,
                        declares_no_period = false, allocates = false, waits_later = false;
};

template <class Mistake> struct averaging {
  static constexpr std::uint64_t period = 4;
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_BOUNDED | (Mistake::leaves_out_a_tensor ? 0 : RG_PLAN_AGREES);
    plan.period = Mistake::declares_no_period ? 1 : period;
    plan.lanes = 1;
    return plan;
  }

  averaging(rg::comm& c, const parameters&) : comm(c) { comm.own(comm.whole(), rg::role::worker); }

  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradients = comm.gradients(comm.whole());
    if (Mistake::allocates) steps_done.push_back("step " + std::to_string(step));
    co_await comm.scale(gradients, comm.workers()); // of its own batch alone
    co_await comm.apply(0, gradients, step, rg::role::worker);
    if (comm.deferred()) {
      co_await comm.norm(total, rg::role::worker);
      co_await comm.commit(total, step, rg::role::worker);
    }
    // A strategy of four steps that averages after eight lets workers go on for longer than it declares.
    const std::uint64_t steps = Mistake::waits_later ? 2 * period : period;
    if (!Mistake::at_the_end_only && !Mistake::never_sends && (step + 1) % steps == 0) co_await average();
  }
  rg::task<> finish() {
    if (!Mistake::never_sends) co_await average();
  }

  rg::comm& comm;

private:
  rg::task<> average() {
    rg::span_of_arena averaged = comm.whole();
    if (Mistake::leaves_out_a_tensor) {
      const rg_arena& arena = comm.arena();
      averaged.count = rg::copy_versioned(rg::at_stride(arena.slices, arena.slice_count - 1)).first;
    }
    const rg_buffer weights = comm.weights(averaged);
    const std::uint32_t n = comm.workers();
    if (comm.rank() != 0) {
      co_await comm.send(0, weights);
      co_await comm.recv(0, weights);
      co_return;
    }
    for (std::uint32_t w = 1; w < n; ++w) co_await comm.recv_add(w, weights);
    co_await comm.scale(weights, 1.0 / n);
    for (std::uint32_t w = 1; w < n; ++w) co_await comm.send(w, weights);
  }

  rg_buffer total = comm.alloc(2, RG_F64);
  std::vector<std::string> steps_done;
};

struct no_messages : sound {
  static constexpr bool never_sends = true;
};
struct last_average : sound {
  static constexpr bool at_the_end_only = true;
};
struct other_tensors : sound {
  static constexpr bool leaves_out_a_tensor = true;
};
struct grows : sound {
  static constexpr bool allocates = true;
};
struct no_period : sound {
  static constexpr bool declares_no_period = true;
};
struct late : sound {
  static constexpr bool waits_later = true;
};

// Mistake: it trains otherwise where it cannot look at the bytes.
struct looks_if_it_can {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS;
    return plan;
  }
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t, std::uint32_t) { return false; }
  looks_if_it_can(rg::comm& c, const parameters&) : comm(c) { comm.own(comm.whole(), rg::role::worker); }
  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradients = comm.gradients(comm.whole());
    if (auto* const bytes = comm.pointer<float>(gradients)) bytes[0] *= 2;
    co_await comm.apply(0, gradients, step, rg::role::worker);
  }
  rg::comm& comm;
};

} // namespace

RG_PLUGIN(
    "averaging", "1.0", rg::strategy<averaging<sound>>("averages", "nothing wrong: averages weights every four steps"),
    rg::strategy<averaging<no_messages>>("never_sends", "broken: talks() promises messages, but none is sent"),
    rg::strategy<averaging<last_average>>("averages_at_the_end", "broken: averages in finish() alone"),
    rg::strategy<averaging<other_tensors>>("leaves_out_a_tensor", "broken: the last tensor is never averaged"),
    rg::strategy<averaging<grows>>("allocates_in_steps", "broken: each step allocates memory"),
    rg::strategy<averaging<no_period>>("declares_no_period", "broken: repeats after four steps, but declares one"),
    rg::strategy<averaging<late>>("waits_later", "broken: workers are further ahead than it declares"),
    rg::strategy<looks_if_it_can>("looks_if_it_can", "broken: looks at bytes where it can, without RG_PLAN_BYTES"))

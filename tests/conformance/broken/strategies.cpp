// SPDX-License-Identifier: Apache-2.0
//
// Synchronous training through worker 0, which sums gradients and returns the sum, each time with one defect.
#include <regatta/tables.hpp>

#include <chrono>
#include <thread>

namespace {

struct sound {
  static constexpr bool forgets_last_bucket = false, keeps_the_sum = false, leaves_a_receive = false, sleeps = false,
                        talks_one_way = false, looks_at_bytes = false, steps_back = false, drifts = false,
                        keeps_rows = false, sums_the_first = false, sends_short = false, says_so = false,
                        vectors_only = false, refuses_clipping = false, asynchronous = false, says_lossy = false;
};

template <class Defect> struct star {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster& cluster) {
    if (Defect::refuses_clipping && cluster.flags & RG_HOST_DEFERRED)
      throw rg::error(RG_E_CONFIG, "there is no norm of all gradients here: set optimizer.clip_norm to 0");
    rg_plan plan{};
    plan.flags = (Defect::asynchronous ? 0 : RG_PLAN_SYNCHRONOUS) | RG_PLAN_ROWS |
                 (Defect::says_so ? RG_PLAN_BYTES : 0) | (Defect::says_lossy ? RG_PLAN_LOSSY : 0);
    plan.lanes = 3;
    plan.period = Defect::steps_back ? 2 : 1; // then no test compares each step with one worker
    return plan;
  }
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t a, std::uint32_t b) {
    return a < b || !Defect::talks_one_way; // the rows of tables go from each worker to each other one
  }

  star(rg::comm& c, const parameters&)
      : comm(c), buckets(c.make_buckets(256)), ready(buckets.size()), total(c.alloc(2, RG_F64)), spare(c.alloc(1)),
        tables(c, 2) {
    comm.own(comm.whole(), rg::role::worker);
  }

  rg::task<> begin_step(std::uint64_t step, rg::step_rows rows) {
    running.spawn(sum_all(step));
    for (std::uint32_t t = 0; t < comm.tables(); ++t) touched[t] = rows[t].size();
    return Defect::keeps_rows ? tables.pull_rows(rows) : tables.begin_step(rows);
  }
  rg::task<> pull_rows(rg::step_rows rows) { return tables.pull_rows(rows); }
  void on_gradient(std::uint64_t, std::uint32_t bucket) { ready[bucket].set(); }
  rg::task<> end_step(std::uint64_t step) {
    if (Defect::sleeps) std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (Defect::leaves_a_receive && step == 0 && comm.workers() > 1) waiting.spawn(wait_for_ever());
    for (std::uint32_t t = 0; t < comm.tables() && Defect::keeps_rows; ++t)
      co_await comm.rows_apply(t, comm.row_numbers(t, 0, touched[t]), comm.row_gradients(t, 0, touched[t]), step,
                               rg::role::worker);
    if (!Defect::keeps_rows) co_await tables.end_step(step);
    co_await running.join();
    if (Defect::sends_short && comm.workers() > 1) {
      if (comm.rank() == 1) co_await comm.send(0, rg::sub(spare, 0, 0), 2);
      if (comm.rank() == 0) co_await comm.recv(1, spare, 2);
    }
    if (comm.deferred()) {
      co_await comm.norm(total, rg::role::worker);
      co_await comm.commit(total, step, rg::role::worker);
    }
  }

  rg::comm& comm;

private:
  rg::task<> wait_for_ever() { co_await comm.recv(comm.rank() ? 0 : 1, spare, 1); }

  rg::task<> sum_all(std::uint64_t step) {
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      rg::event& gradient_ready = ready[b];
      co_await gradient_ready;
      if (Defect::forgets_last_bucket && b + 1 == buckets.size()) break;
      const rg_buffer gradient = comm.gradients(buckets[b]);
      const bool left_out =
          (Defect::sums_the_first && buckets[b].first >= 65536) || (Defect::vectors_only && has_matrix(buckets[b]));
      if (!left_out) co_await sum(gradient);
      if (Defect::looks_at_bytes) seen += *comm.template pointer<float>(gradient);
      if (Defect::steps_back) co_await comm.scale(gradient, -1);
      if (Defect::drifts) co_await comm.scale(gradient, 1 + 0.01 * static_cast<double>(++calls));
      co_await comm.apply(buckets[b].first, gradient, step, rg::role::worker);
    }
  }
  bool has_matrix(rg::span_of_arena s) const {
    const rg_arena& arena = comm.arena();
    for (std::uint32_t k = 0; k < arena.slice_count; ++k) {
      const rg_slice slice = rg::copy_versioned(rg::at_stride(arena.slices, k));
      if (comm.tensor_of(slice).ndim > 1 && slice.first < s.end() && s.first < slice.first + slice.count) return true;
    }
    return false;
  }
  rg::task<> sum(rg_buffer gradient) {
    const std::uint32_t n = comm.workers();
    if (comm.rank() == 0) {
      for (std::uint32_t w = 1; w < n; ++w) co_await comm.recv_add(w, gradient);
      for (std::uint32_t w = 1; w < n && !Defect::keeps_the_sum; ++w) co_await comm.send(w, gradient);
    } else {
      co_await comm.send(0, gradient);
      if (!Defect::keeps_the_sum) co_await comm.recv(0, gradient);
    }
  }
  std::vector<rg::span_of_arena> buckets;
  std::vector<rg::event> ready;
  static inline std::uint64_t calls = 0; // of all ranks and runs of a process
  float seen = 0;
  rg_buffer total, spare;
  rg::replicated_tables tables;
  std::vector<std::uint64_t> touched = std::vector<std::uint64_t>(comm.tables());
  rg::task_group running, waiting;
};

struct last_bucket : sound {
  static constexpr bool forgets_last_bucket = true;
};
struct own_sum : sound {
  static constexpr bool keeps_the_sum = true;
};
struct left_receive : sound {
  static constexpr bool leaves_a_receive = true;
};
struct sleep_a_step : sound {
  static constexpr bool sleeps = true;
};

struct one_way : sound {
  static constexpr bool talks_one_way = true;
};
struct own_code : sound {
  static constexpr bool looks_at_bytes = true;
};
struct backwards : sound {
  static constexpr bool steps_back = true;
};
struct drift : sound {
  static constexpr bool drifts = true;
};
struct own_rows : sound {
  static constexpr bool keeps_rows = true;
};
struct first_buckets : sound {
  static constexpr bool sums_the_first = true;
};
struct empty_message : sound {
  static constexpr bool sends_short = true;
};
struct vectors : sound {
  static constexpr bool vectors_only = true;
};
struct no_clipping : sound {
  static constexpr bool refuses_clipping = true;
};
struct whenever : sound {
  static constexpr bool asynchronous = true;
};
struct each_alone : sound {
  static constexpr bool asynchronous = true, keeps_the_sum = true;
};
struct lossy_in_words : sound {
  static constexpr bool says_lossy = true;
};
struct own_bytes : sound {
  static constexpr bool looks_at_bytes = true, says_so = true;
};

} // namespace

RG_PLUGIN("broken_strategies", "1.0", rg::strategy<star<sound>>("sound", "nothing wrong: what the others are made of"),
          rg::strategy<star<last_bucket>>("forgets_a_bucket", "broken: one bucket is never summed nor applied"),
          rg::strategy<star<own_sum>>("keeps_the_sum", "broken: worker 0 alone has the sum"),
          rg::strategy<star<left_receive>>("never_drains", "broken: a receive that nobody sends to"),
          rg::strategy<star<sleep_a_step>>("sleeps", "broken: waits outside of the host"),
          rg::strategy<star<one_way>>("talks_one_way", "broken: who talks to whom depends on who is asked"),
          rg::strategy<star<own_code>>("looks_at_bytes", "broken: looks at bytes that ghosts do not have"),
          rg::strategy<star<backwards>>("steps_back", "broken: goes up where it should go down"),
          rg::strategy<star<own_bytes>>("says_it_looks", "nothing wrong: looks at bytes, and says so"),
          rg::strategy<star<first_buckets>>("sums_the_first", "broken: sums 65536 elements, and no more"),
          rg::strategy<star<empty_message>>("sends_short", "broken: sends less than is waited for, without a word"),
          rg::strategy<star<vectors>>("sums_vectors", "broken: matrices are never summed"),
          rg::strategy<star<no_clipping>>("refuses_clipping", "nothing wrong: cannot clip, and says so in plan()"),
          rg::strategy<star<whenever>>("asynchronous", "nothing wrong: promises no equal replicas"),
          rg::strategy<star<each_alone>>("trains_alone", "broken: sends, but only worker 0 uses what it gets"),
          rg::strategy<star<lossy_in_words>>("says_lossy", "nothing wrong: says RG_PLAN_LOSSY, but its sums are exact"),
          rg::strategy<star<drift>>("drifts", "broken: another sum in every run"),
          rg::strategy<star<own_rows>>("keeps_rows", "broken: everybody updates the rows of tables by himself"))

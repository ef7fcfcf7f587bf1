// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous parameter server (Dean et al., Large scale distributed deep networks, 2012): a worker pushes its
// gradients, the server applies each push when it arrives and answers with its current weights, and no worker waits for
// another. With a `bound` s it is stale synchronous parallel (Ho et al., More effective distributed ML via a stale
// synchronous parallel parameter server, 2013): a worker that has done c + 1 steps gets its weights once all workers
// have done c + 1 - s. With s = 0 the pushes of a step are summed and applied once, as in sync_ps.
//
// Rows of sparse tables are pulled before the step that touches them and pushed after it, under the same bound
// (regatta/tables.hpp).
//
// It has no base: in rg::data_parallel each worker applies the sum of all gradients of a step, and here there is none.
//
// The result counts the staleness of gradients ("staleness"): the updates by other workers between a worker's pull and
// its push.
#include <regatta/servers.hpp>
#include <regatta/tables.hpp>

namespace {

enum : std::uint32_t { to_servers, to_workers, rows_to_servers, rows_to_workers, lanes };

struct async_ps {
  struct parameters {
    std::int64_t bound = -1;
    std::uint64_t bucket = 4 << 20;
    std::size_t ahead = 2;
  };
  static constexpr auto fields = rg::fields(
      rg::field("bound", &parameters::bound,
                "steps that a worker may be ahead of the slowest one; 0: none; -1: any number")
          .range(-1, 1e9),
      rg::field("bucket", &parameters::bucket, "bytes of gradients pushed at once, over all servers")
          .unit(RG_UNIT_BYTES)
          .range(64, 1e10),
      rg::field("ahead", &parameters::ahead, "pushes of each worker for which a server has memory").range(1, 64));

  static rg_plan plan(const parameters& p, const rg_cluster& c) {
    if (c.flags & RG_HOST_DEFERRED)
      throw rg::error(RG_E_CONFIG,
                      "it applies every push separately, so it cannot clip by the norm of a whole gradient, nor skip a "
                      "step of fp16: set optimizer.clip_norm to 0 and train.precision to another, or use sync_ps");
    rg_plan plan{};
    plan.flags = RG_PLAN_SERVERS | RG_PLAN_ROWS | RG_PLAN_SHORT;
    plan.flags |= p.bound == 0 ? RG_PLAN_SYNCHRONOUS : RG_PLAN_AGREES;
    if (p.bound > 0) plan.flags |= RG_PLAN_BOUNDED;
    plan.bound = p.bound > 0 ? static_cast<std::uint64_t>(p.bound) : 0;
    plan.lanes = lanes;
    return plan;
  }
  static bool talks(const parameters&, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    return rg::worker_and_server(c, a, b);
  }

  async_ps(rg::comm& c, const parameters& p)
      : comm(c), cut(c, rg::buckets_for_servers(c, p.bucket)),
        bound(p.bound < 0 ? forever : static_cast<std::uint64_t>(p.bound)), client(c, rows_to_servers, rows_to_workers),
        tables(c, rows_to_servers, rows_to_workers) {
    if (c.is_worker()) {
      pulls.resize(cut.buckets() * c.servers());
      pushes.resize(cut.buckets() * c.servers());
    }
    if (!c.is_server()) return;
    for (std::size_t b = 0; b < cut.buckets(); ++b)
      if (const auto range = cut.mine(b); range.count) {
        shard s;
        s.range = range;
        s.weights = c.own(range, rg::role::server);
        held.push_back(s);
      }
    const auto slots = std::min(p.ahead, held.size());
    for (std::uint32_t w = 0; w < c.workers(); ++w) {
      worker_states.push_back(std::make_unique<worker_state>(c, slots, cut.largest()));
      worker_states.back()->pushed.resize(held.size());
      worker_states.back()->pulled.resize(held.size());
    }
  }

  // ------------------------------------------------------------------------------------------------- worker ---

  rg::task<> begin_step(std::uint64_t, rg::step_rows rows) { return client.pull(rows); }
  rg::task<> pull_rows(rg::step_rows rows) { return client.pull(rows, rg::row_request::pull); }
  // Posts the receive of the weights before it pushes, so that the answer arrives directly in place.
  void on_gradient(std::uint64_t, std::uint32_t b) {
    pull(b);
    for (std::uint32_t i = 0; i < comm.servers(); ++i) {
      const std::uint32_t s = comm.server_in_turn(i);
      if (const auto range = cut.part(b, s); range.count)
        pushes[b * comm.servers() + s] = comm.send(comm.server_rank(s), comm.gradients(range), to_servers);
    }
  }
  rg::task<> end_step(std::uint64_t) {
    co_await client.push();
    for (auto& p : pushes) co_await p;
    for (auto& p : pulls) co_await p;
  }
  // An empty message in place of the first push tells a server that this worker has finished. Once all workers have,
  // each server sends its final weights, the same to all workers.
  rg::task<> finish() {
    if (comm.tables()) co_await client.goodbye();
    for (std::uint32_t b = 0; b < cut.buckets(); ++b) pull(b);
    for (std::uint32_t s = 0; s < comm.servers(); ++s)
      if (cut.has_part(s)) co_await comm.send(comm.server_rank(s), comm.gradients({0, 0}), to_servers);
    for (auto& p : pulls) co_await p;
  }

  // ------------------------------------------------------------------------------------------------- server ---

  // Two coroutines per worker: one receives and applies its pushes, the other answers when the bound permits. A third
  // one serves its rows.
  rg::task<> serve() {
    for (std::uint32_t w = 0; w < comm.workers(); ++w) {
      if (comm.tables()) serving.spawn(attend_rows(w));
      if (held.empty()) continue;
      serving.spawn(take_pushes(w));
      serving.spawn(answer(w));
    }
    co_await serving.join();
    for (std::size_t b = 0; b < held.size(); ++b)
      for (std::uint32_t i = 0; i < comm.workers(); ++i) {
        const std::uint32_t w = comm.worker_in_turn(i);
        worker_state& to = *worker_states[w];
        co_await to.last;
        to.last = comm.send(w, held[b].weights, to_workers);
      }
    for (auto& c : worker_states) {
      rg::operation& last = c->last;
      co_await last;
    }
  }

  rg::comm& comm;

private:
  static constexpr std::uint64_t forever = std::numeric_limits<std::uint64_t>::max();

  struct shard { // of a server: its part of one bucket
    rg::span_of_arena range{};
    rg_buffer weights{};
    std::uint64_t version = 0; // updates so far
    std::uint32_t arrived = 0; // pushes of the step in progress (bound = 0)
  };
  struct worker_state { // of a server: one worker
    worker_state(rg::comm& c, std::size_t slots, std::uint64_t largest) : answers(c, slots, largest), receives(slots) {
      for (std::size_t i = 0; i < slots; ++i) memory.push_back(c.alloc(largest));
    }
    rg::snapshots answers;
    std::vector<rg::operation> receives; // a ring of posted receives, one per entry of `memory`
    std::vector<rg_buffer> memory;
    std::vector<std::uint64_t> pushed; // [shard] number of pushes applied; forever: the worker has finished
    std::vector<std::uint64_t> pulled; // [shard] version that was sent to it last
    rg::event changed;                 // any worker's `pushed` has changed
    rg::event combined;                // bound = 0: a step of all workers was applied
    rg::operation last;
    std::uint64_t rows_pushed = 0; // steps whose rows were applied; forever: the worker has finished
    rg::event rows_changed;        // any worker's `rows_pushed` has changed
  };

  void pull(std::uint32_t b) {
    for (std::uint32_t s = 0; s < comm.servers(); ++s)
      if (const auto range = cut.part(b, s); range.count)
        pulls[b * comm.servers() + s] = comm.recv(comm.server_rank(s), comm.weights(range), to_workers);
  }

  rg_buffer memory_of(const worker_state& c, std::size_t b) const {
    return rg::sub(c.memory[b % c.memory.size()], 0, held[b].range.count);
  }
  void post(worker_state& from, std::uint32_t w, std::size_t b) {
    from.receives[b % from.receives.size()] = comm.recv(w, memory_of(from, b), to_servers);
  }

  rg::task<> take_pushes(std::uint32_t w) {
    worker_state& from = *worker_states[w];
    const std::size_t shards = held.size(), slots = from.receives.size();
    for (std::uint64_t step = 0;; ++step) {
      post(from, w, 0);
      for (std::size_t b = 0; b < shards; ++b) {
        rg::operation& push = from.receives[b % slots];
        if (co_await push == 0) { // the worker has finished: nothing waits for it any more
          std::fill(from.pushed.begin(), from.pushed.end(), forever);
          for (auto& c : worker_states) c->changed.set();
          co_return;
        }
        if (b == 0)
          for (std::size_t next = 1; next < std::min(slots, shards); ++next) post(from, w, next);
        co_await apply(w, b, step);
        if (b + slots < shards) post(from, w, b + slots);
      }
    }
  }

  // Applies the push of worker w when it arrives. With bound = 0, the last worker's call applies the sum of all pushes,
  // added in the order of workers.
  rg::task<> apply(std::uint32_t w, std::size_t b, std::uint64_t step) {
    shard& part = held[b];
    worker_state& from = *worker_states[w];
    comm.record_of_step("staleness", part.version - from.pulled[b], w, step);
    if (bound > 0) {
      ++part.version;
      co_await comm.apply(part.range.first, memory_of(from, b), step, rg::role::server);
      from.pushed[b] = step + 1;
      for (auto& c : worker_states) c->changed.set();
      co_return;
    }
    if (++part.arrived < comm.workers()) {
      while (from.pushed[b] <= step) co_await from.combined;
      co_return;
    }
    part.arrived = 0;
    const rg_buffer sum = memory_of(*worker_states[0], b);
    for (std::uint32_t v = 1; v < comm.workers(); ++v) co_await comm.axpy(sum, 1, memory_of(*worker_states[v], b));
    ++part.version;
    co_await comm.apply(part.range.first, sum, step, rg::role::server);
    for (auto& c : worker_states) c->pushed[b] = step + 1;
    for (auto& c : worker_states) c->combined.set();
    for (auto& c : worker_states) c->changed.set();
  }

  rg::task<> answer(std::uint32_t w) {
    worker_state& to = *worker_states[w];
    for (std::uint64_t step = 0;; ++step)
      for (std::size_t b = 0; b < held.size(); ++b) {
        while (!may_answer(to, b, step)) co_await to.changed;
        if (to.pushed[b] == forever) { // it does no further step
          co_await to.answers.all_sent();
          co_return;
        }
        to.pulled[b] = held[b].version;
        co_await to.answers.send(comm, w, held[b].weights, to_workers);
      }
  }
  bool may_answer(const worker_state& to, std::size_t b, std::uint64_t step) const {
    if (to.pushed[b] <= step) return false;
    return std::all_of(worker_states.begin(), worker_states.end(),
                       [&](const auto& c) { return c->pushed[b] >= step + 1 - std::min(bound, step + 1); });
  }

  rg::task<> attend_rows(std::uint32_t w) {
    worker_state& from = *worker_states[w];
    for (std::uint64_t step = 0;;) {
      const rg::row_request why = co_await tables.receive_request(w);
      if (why == rg::row_request::goodbye) {
        rows_begun += step == 0;
        from.rows_pushed = forever;
        for (auto& c : worker_states) c->rows_changed.set();
        co_return;
      }
      while (!may_send_rows(step)) co_await from.rows_changed;
      const std::uint64_t version_sent = rows_version;
      co_await tables.send_rows(w);
      if (why == rg::row_request::pull) continue;
      if (step == 0 && ++rows_begun == comm.workers())
        for (auto& c : worker_states) c->rows_changed.set();
      co_await tables.receive(w);
      // In their first step all workers see the initial rows, however late one starts: losses stay comparable.
      while (rows_begun < comm.workers()) co_await from.rows_changed;
      comm.record_of_step("staleness", rows_version - version_sent, w, step);
      co_await apply_rows(w, step++);
    }
  }
  // As apply(), for rows.
  rg::task<> apply_rows(std::uint32_t w, std::uint64_t step) {
    worker_state& from = *worker_states[w];
    if (bound > 0) {
      ++rows_version;
      co_await tables.apply_of(w, step);
      from.rows_pushed = step + 1;
    } else if (++rows_arrived < comm.workers()) {
      while (from.rows_pushed <= step) co_await from.rows_changed; // its push is still needed
      co_return;
    } else {
      rows_arrived = 0;
      ++rows_version;
      for (std::uint32_t v = 0; v < comm.workers(); ++v) co_await tables.add(v);
      co_await tables.apply(step);
      for (auto& c : worker_states) c->rows_pushed = step + 1;
    }
    for (auto& c : worker_states) c->rows_changed.set();
  }
  bool may_send_rows(std::uint64_t step) const {
    return std::all_of(worker_states.begin(), worker_states.end(),
                       [&](const auto& c) { return c->rows_pushed >= step - std::min(bound, step); });
  }

  rg::shards cut;
  std::uint64_t bound;
  rg::table_client client;
  rg::table_server tables;
  std::vector<rg::operation> pulls, pushes; // of a worker: [bucket][server]
  std::vector<shard> held;
  std::vector<std::unique_ptr<worker_state>> worker_states;
  std::uint64_t rows_version = 0; // updates of rows so far
  std::uint32_t rows_begun = 0;   // workers that have received the rows of their first step
  std::uint32_t rows_arrived = 0; // pushes of rows of the step in progress (bound = 0)
  rg::task_group serving;
};

} // namespace

RG_PLUGIN("async_ps", "0.1.0",
          rg::strategy<async_ps>("async_ps",
                                 "asynchronous parameter server: no worker waits for another, or only within a bound"))

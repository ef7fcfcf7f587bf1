// SPDX-License-Identifier: Apache-2.0
//
// GEO-SGD: each worker trains alone, with its own optimizer, and every k batches pushes the difference between its
// weights and the servers'. A server adds a worker's difference, divided by the number of workers, when it arrives, and
// answers with its current weights. No worker waits for another.
//
// `merge = "add"` is the rule of PaddlePaddle (GeoCommunicator in paddle/fluid/distributed/ps/service/communicator): a
// worker keeps its own progress and adds that of the other workers. With n workers and `old`, the servers' weights as
// the worker knows them:
//   push:    delta = (weights - old) / n; old += delta; the server adds delta
//   answer:  weights += server - old; old = server
// `merge = "replace"` averages weights asynchronously: the worker continues with the servers' weights, and so
// loses (n - 1) / n of the progress it has made.
//   push:    the server adds (weights - old) / n
//   answer:  weights = old = server
//
// The servers hold weights only; the optimizer and its state belong to the workers. The result counts the staleness of
// pushes ("staleness"): the differences of other workers that were added between a worker's pull and its push. rows.hpp
// handles sparse tables.
#include "rows.hpp"

#include <regatta/data_parallel.hpp>
#include <regatta/servers.hpp>

namespace {

enum : std::uint32_t { to_servers, to_workers, rows_to_servers, rows_to_workers, lane_count };

struct geo_ps : rg::data_parallel<geo_ps> {
  struct parameters {
    std::uint64_t k = 400;
    std::uint64_t bucket = 4 << 20;
    std::size_t ahead = 2;
    std::string merge = "add";
  };
  static constexpr auto fields = rg::fields(
      rg::field("k", &parameters::k, "steps between two pushes").range(1, 1e9),
      rg::field("bucket", &parameters::bucket, "bytes pushed at once, over all servers")
          .unit(RG_UNIT_BYTES)
          .range(64, 1e10),
      rg::field("ahead", &parameters::ahead, "pushes of each worker for which a server has memory").range(1, 64),
      rg::field("merge", &parameters::merge,
                "add: a worker keeps its own progress and adds the others', as in PaddlePaddle; replace: it takes the "
                "servers' weights")
          .one_of("add", "replace"));

  static rg_plan plan(const parameters& p, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SERVERS | RG_PLAN_ROWS | RG_PLAN_SHORT;
    plan.lanes = lane_count;
    plan.period = p.k;
    return plan;
  }
  static bool talks(const parameters&, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    return rg::worker_and_server(c, a, b);
  }

  geo_ps(rg::comm& c, const parameters& p)
      : data_parallel(c, rg::buckets_for_servers(c, p.bucket), 1), cut(c, buckets()), k(p.k), adds(p.merge == "add"),
        rows(c, adds, rows_to_servers, rows_to_workers), row_server(c, k, adds, rows_to_servers, rows_to_workers) {
    if (c.is_worker()) {
      c.own(c.whole(), rg::role::worker);
      if (c.arena().count) old = c.alloc(c.arena().count); // a model may have sparse tables only
      if (c.arena().count) answer = adds ? c.alloc(c.arena().count) : c.weights(c.whole());
      pulls.resize(cut.buckets() * c.servers());
      pushes.resize(cut.buckets() * c.servers());
    }
    if (!c.is_server()) return;
    for (std::size_t b = 0; b < cut.buckets(); ++b)
      if (const auto range = cut.mine(b); range.count) held.push_back({c.own(range, rg::role::server), 0});
    const auto slots = std::min(p.ahead, held.size());
    for (std::uint32_t w = 0; w < c.workers(); ++w)
      worker_states.push_back(std::make_unique<worker_state>(c, slots, cut.largest()));
  }

  // ------------------------------------------------------------------------------------------------- worker ---

  rg::task<> begin_step(std::uint64_t step, rg::step_rows touched) {
    data_parallel::begin_step(step);
    return rows.begin_step(touched);
  }
  // An evaluation reads the worker's own copy.
  rg::task<> pull_rows(rg::step_rows touched) { return rows.read(touched); }
  // Gradients are divided by the global batch; a worker that trains alone needs the mean over its own batch.
  rg::task<> update(rg::bucket b) {
    if (b.step == 0) co_await comm.copy(old_of(b.range), comm.weights(b.range));
    co_await comm.scale(b.gradients, comm.workers());
    co_await comm.apply(b.range.first, b.gradients, b.step, rg::role::worker);
    if (!comm.deferred() && closes(b.step)) co_await push(b.index);
  }
  rg::task<> end_step(std::uint64_t step) {
    co_await rows.update(step);
    co_await data_parallel::end_step(step); // with deferred updates each worker clips by its own norm
    for (std::size_t b = 0; comm.deferred() && closes(step) && b < cut.buckets(); ++b) co_await push(b);
    steps = step + 1;
    if (closes(step)) co_await exchange();
  }
  // Pushes the progress since the last push. Then an empty message tells each server that this worker has finished.
  // Once all workers have, each server sends its final weights, the same to all workers.
  rg::task<> finish() {
    if (steps % k) {
      for (std::size_t b = 0; b < cut.buckets(); ++b) co_await push(b);
      co_await exchange();
    }
    co_await rows.goodbye();
    for (std::size_t b = 0; b < cut.buckets(); ++b) pull(b, comm.weights(comm.whole()));
    for (std::uint32_t s = 0; s < comm.servers(); ++s)
      if (cut.has_part(s)) co_await comm.send(comm.server_rank(s), comm.gradients({0, 0}), to_servers);
    for (auto& p : pulls) co_await p;
  }

  // ------------------------------------------------------------------------------------------------- server ---

  rg::task<> serve() {
    for (std::uint32_t w = 0; w < comm.workers(); ++w) {
      if (comm.tables()) serving.spawn(row_server.attend(w));
      if (!held.empty()) serving.spawn(attend(w));
    }
    co_await serving.join();
    for (const shard& s : held)
      for (std::uint32_t i = 0; i < comm.workers(); ++i) {
        const std::uint32_t w = comm.worker_in_turn(i);
        worker_state& to = *worker_states[w];
        co_await to.last;
        to.last = comm.send(w, s.weights, to_workers);
      }
    for (auto& c : worker_states) {
      rg::operation& last = c->last;
      co_await last;
    }
  }

private:
  struct shard { // of a server: its part of one bucket
    rg_buffer weights{};
    std::uint64_t version = 0; // differences added so far
  };
  struct worker_state { // of a server: one worker
    worker_state(rg::comm& c, std::size_t slots, std::uint64_t largest) : answers(c, slots, largest), receives(slots) {
      for (std::size_t i = 0; i < slots; ++i) memory.push_back(c.alloc(largest));
    }
    rg::snapshots answers;
    std::vector<rg::operation> receives;
    std::vector<rg_buffer> memory;
    std::vector<std::uint64_t> pulled; // [shard] version that was sent to it last
    rg::operation last;
  };

  bool closes(std::uint64_t step) const { return (step + 1) % k == 0; }

  // The gradient is used up, so the difference is stored in its memory. With "replace" the answer arrives directly in
  // the weights, which this step does not read any more.
  rg::task<> push(std::size_t b) {
    const auto range = cut.bucket(b);
    co_await comm.copy(comm.gradients(range), comm.weights(range));
    co_await comm.axpy(comm.gradients(range), -1, old_of(range));
    if (adds) {
      co_await comm.scale(comm.gradients(range), 1.0 / comm.workers());
      co_await comm.axpy(old_of(range), 1, comm.gradients(range));
    }
    pull(b, answer);
    for (std::uint32_t i = 0; i < comm.servers(); ++i) {
      const std::uint32_t s = comm.server_in_turn(i);
      if (const auto part = cut.part(b, s); part.count)
        pushes[b * comm.servers() + s] = comm.send(comm.server_rank(s), comm.gradients(part), to_servers);
    }
  }
  void pull(std::size_t b, rg_buffer into) {
    for (std::uint32_t s = 0; s < comm.servers(); ++s)
      if (const auto part = cut.part(b, s); part.count)
        pulls[b * comm.servers() + s] =
            comm.recv(comm.server_rank(s), rg::sub(into, part.first, part.count), to_workers);
  }
  rg::task<> exchange() {
    co_await rows.exchange();
    for (auto& p : pushes) co_await p;
    for (auto& p : pulls) co_await p;
    if (!old.count) co_return;
    if (adds) { // weights += server - old
      co_await comm.axpy(old, -1, answer);
      co_await comm.axpy(comm.weights(comm.whole()), -1, old);
    }
    co_await comm.copy(old, answer);
  }
  rg_buffer old_of(rg::span_of_arena range) const { return rg::sub(old, range.first, range.count); }

  rg::task<> attend(std::uint32_t w) {
    worker_state& from = *worker_states[w];
    from.pulled.resize(held.size());
    const std::size_t shards = held.size(), slots = from.receives.size();
    const auto memory = [&](std::size_t b) { return rg::sub(from.memory[b % slots], 0, held[b].weights.count); };
    const auto post = [&](std::size_t b) { from.receives[b % slots] = comm.recv(w, memory(b), to_servers); };
    for (std::uint64_t step = k - 1;; step += k) { // the last step of a period
      post(0);
      for (std::size_t b = 0; b < shards; ++b) {
        rg::operation& push = from.receives[b % slots];
        if (co_await push == 0) { // the worker has finished
          co_await from.answers.all_sent();
          co_return;
        }
        if (b == 0)
          for (std::size_t next = 1; next < std::min(slots, shards); ++next) post(next);
        shard& part = held[b];
        comm.record_of_step("staleness", part.version - from.pulled[b], w, step);
        co_await comm.axpy(part.weights, adds ? 1.0 : 1.0 / comm.workers(), memory(b));
        if (b + slots < shards) post(b + slots);
        from.pulled[b] = ++part.version;
        co_await from.answers.send(comm, w, part.weights, to_workers);
      }
    }
  }

  rg::shards cut;
  std::uint64_t k, steps = 0;
  bool adds; // merge = "add"
  geo::row_worker rows;
  geo::row_server row_server;
  rg_buffer old{};                          // of a worker: the servers' weights as it knows them
  rg_buffer answer{};                       // of a worker: receives the servers' answers
  std::vector<rg::operation> pulls, pushes; // of a worker: [bucket][server]
  std::vector<shard> held;
  std::vector<std::unique_ptr<worker_state>> worker_states;
  rg::task_group serving;
};

} // namespace

RG_PLUGIN("geo_ps", "0.1.0",
          rg::strategy<geo_ps>("geo_ps",
                               "workers train alone and push the difference to parameter servers every k steps"))

// SPDX-License-Identifier: Apache-2.0
//
// Synchronous parameter server (Li et al., Scaling Distributed Machine Learning with the Parameter Server, 2014,
// without its relaxations). Every bucket is cut into one equal part per server, so that each server holds the same
// number of bytes whatever the tensors' sizes, and all have work from the first bucket on. A worker pushes a part when
// its gradients are ready. The server sums the pushes in the order of workers, updates, and sends the new weights back,
// directly into place, because the step does not read them any more. Rows of sparse tables are pulled before the step
// that touches them; their gradients are pushed after it (regatta/tables.hpp).
//
// A server in a worker's process works in place: its part of the weights is that of the worker's arena, and gradients
// of other workers are added to the worker's own. Nothing is copied from a rank to itself. This is not done if the wire
// type rounds, because the server's weights are then more precise than the workers', nor if updates are deferred.
//
// The next forward pass reads the weights from the arena's end to its beginning and need not wait for all of them.
// Weights of the last buckets return on a more urgent lane, and a step ends once everything is pushed (cf. Jayarajan et
// al., Priority-based parameter propagation for distributed DNN training, 2019).
//
// It has no base: in rg::data_parallel each worker applies the sum of a bucket before its step ends, while here servers
// update, and a step may end before its weights are back.
#include <regatta/servers.hpp>
#include <regatta/tables.hpp>

namespace {

// A rank may be worker and server at once: sends of one role must not match receives of the other.
enum : std::uint32_t {
  needed_first,
  to_servers,
  needed_last,
  between_servers,
  rows_to_servers,
  rows_to_workers,
  lanes
};

struct sync_ps {
  struct parameters {
    std::uint64_t bucket = 4 << 20;
    std::size_t ahead = 4;
    std::string wire = "fp32";
    bool early = true;
  };
  static constexpr auto fields =
      rg::fields(rg::field("bucket", &parameters::bucket, "bytes of gradients pushed at once, over all servers")
                     .unit(RG_UNIT_BYTES)
                     .range(64, 1e10),
                 rg::field("ahead", &parameters::ahead, "buckets of each worker for which a server has posted receives")
                     .range(1, 64),
                 rg::field("wire", &parameters::wire, "wire type of gradients and weights; servers keep fp32")
                     .one_of("fp32", "bf16", "fp16"),
                 rg::field("early", &parameters::early, "the next step begins before all weights have arrived"));

  static rg_plan plan(const parameters&, const rg_cluster& c) {
    rg_plan plan{};
    // Server 0 is unlike the others if it sums the norms of deferred updates.
    if (!(c.flags & RG_HOST_DEFERRED)) plan.symmetry = RG_SYMMETRY_CLASSES;
    plan.flags = RG_PLAN_SERVERS | RG_PLAN_SYNCHRONOUS | RG_PLAN_ROWS | RG_PLAN_SHORT;
    plan.lanes = lanes;
    return plan;
  }
  // Workers talk to servers, and servers to server 0, which sums the norms of deferred updates.
  static bool talks(const parameters&, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    return rg::worker_and_server(c, a, b) ||
           (rg::is_server(c, a) && rg::is_server(c, b) && (a == c.server_rank[0] || b == c.server_rank[0]));
  }

  sync_ps(rg::comm& c, const parameters& p)
      : comm(c), cut(c, rg::buckets_for_servers(c, p.bucket)), ahead(p.ahead), wire(rg::wire_type(p.wire)),
        early(p.early), in_place(c.is_worker() && c.is_server() && !wire && !c.deferred()),
        holder(in_place ? rg::role::worker : rg::role::server), client(c, rows_to_servers, rows_to_workers),
        server(c, rows_to_servers, rows_to_workers) {
    if (c.is_worker()) {
      pulls.resize(cut.buckets() * c.servers());
      pushes.resize(cut.buckets() * c.servers());
    }
    if (!c.is_server()) return;
    total = c.alloc(2, RG_F64);
    std::uint64_t count = 0;
    for (std::size_t b = 0; b < cut.buckets(); ++b) count += cut.mine(b).count;
    const rg_buffer sums = in_place ? c.gradients(c.whole()) : c.alloc(std::max<std::uint64_t>(count, 16));
    std::uint64_t at = 0;
    for (std::size_t b = 0; b < cut.buckets(); ++b) {
      const auto range = cut.mine(b);
      parts.push_back({range, c.own(range, holder), rg::sub(sums, in_place ? range.first : at, range.count)});
      at += range.count;
    }
    if (in_place) mine = std::vector<rg::event>(std::max<std::size_t>(cut.buckets(), 1));
    receives.resize(cut.buckets() * c.workers());
    sends.resize(cut.buckets() * c.workers());
  }

  // ------------------------------------------------------------------------------------------------- worker ---

  rg::task<> begin_step(std::uint64_t, rg::step_rows rows) { return client.pull(rows); }
  rg::task<> pull_rows(rg::step_rows rows) { return client.pull(rows, rg::row_request::pull); }
  // Posts the receive of the weights before it pushes, so that the answer arrives directly in place.
  void on_gradient(std::uint64_t, std::uint32_t b) {
    for (std::uint32_t i = 0; i < comm.servers(); ++i) {
      const std::uint32_t s = comm.server_in_turn(i);
      const auto range = cut.part(b, s);
      if (!range.count || is_mine(s)) continue;
      pulls[b * comm.servers() + s] = comm.recv(comm.server_rank(s), comm.weights(range), lane_of(b), wire);
      pushes[b * comm.servers() + s] = comm.send(comm.server_rank(s), comm.gradients(range), to_servers, wire);
    }
    if (in_place) {
      post(b);
      mine[b].set();
    }
  }
  rg::task<> end_step(std::uint64_t) {
    co_await client.push();
    if (early) {
      co_await returning.join(); // has ended long ago, except after an error
      comm.weights_from(comm.arena().count);
      returning.spawn(take_weights());
    }
    for (auto& p : pushes) co_await p;
    if (in_place) co_await served; // the next backward pass overwrites the gradients
    if (!early)
      for (auto& p : pulls) co_await p;
  }
  // An empty message in place of the first push tells a server that this worker has finished.
  rg::task<> finish() {
    co_await returning.join();
    if (comm.tables()) co_return co_await client.goodbye();
    if (in_place) {
      leaving = true;
      post(0);
      mine[0].set();
    }
    for (std::uint32_t s = 0; s < comm.servers(); ++s)
      if (!is_mine(s)) co_await comm.send(comm.server_rank(s), comm.gradients({0, 0}), to_servers);
  }

  // ------------------------------------------------------------------------------------------------- server ---

  rg::task<> serve() {
    for (std::uint64_t step = 0;; ++step) {
      if (comm.tables() && !co_await server.begin_step()) break;
      if (cut.buckets() && !in_place) post(0);
      // All workers train the same number of steps: all finish together.
      if (!comm.tables() && !co_await all_pushed(0)) break;
      for (std::size_t b = 1; b < std::min(ahead, cut.buckets()) && !in_place; ++b) post(b);
      for (std::size_t b = 0; b < cut.buckets(); ++b) {
        if (b || comm.tables()) co_await all_pushed(b);
        if (b + ahead < cut.buckets() && !in_place) post(b + ahead);
        if (!parts[b].range.count) continue;
        co_await all_sent(b); // sends of the previous step's weights may not have ended
        co_await comm.apply(parts[b].range.first, parts[b].sum, step, holder);
        if (!comm.deferred()) answer(b);
      }
      if (in_place) served.set();
      co_await server.end_step(step);
      if (comm.deferred()) {
        co_await add_up_norms();
        co_await comm.commit(total, step, rg::role::server);
        for (std::size_t b = 0; b < cut.buckets(); ++b) answer(b);
      }
    }
    for (std::size_t b = 0; b < cut.buckets(); ++b) co_await all_sent(b);
  }

  rg::comm& comm;

private:
  struct part {
    rg::span_of_arena range;
    rg_buffer weights, sum;
  };

  bool is_mine(std::uint32_t s) const { return in_place && s == comm.server(); }
  std::uint32_t lane_of(std::size_t b) const { return 2 * b >= cut.buckets() ? needed_first : needed_last; }

  // Waits for weights in the order in which the next forward pass needs them.
  rg::task<> take_weights() {
    for (std::size_t b = cut.buckets(); b-- > 0;) {
      for (std::uint32_t s = 0; s < comm.servers(); ++s) {
        auto& pull = pulls[b * comm.servers() + s];
        co_await pull;
      }
      comm.weights_from(cut.bucket(b).first);
    }
  }

  // Posts the receives of bucket b. The first push overwrites the sum and later ones are added in the order of workers,
  // so that the result does not depend on timing. In place, the rank's own gradients are the first summand and must be
  // complete.
  void post(std::size_t b) {
    for (std::uint32_t w = 0; w < comm.workers(); ++w) {
      if (!parts[b].range.count || (in_place && w == comm.rank())) continue;
      auto& r = receives[b * comm.workers() + w];
      r = w || in_place ? comm.recv_add(w, parts[b].sum, to_servers, wire)
                        : comm.recv(w, parts[b].sum, to_servers, wire);
    }
  }
  rg::task<bool> all_pushed(std::size_t b) {
    if (in_place) {
      rg::event& posted = mine[b];
      co_await posted;
    }
    bool pushed = !leaving;
    for (std::uint32_t w = 0; w < comm.workers() && parts[b].range.count; ++w) {
      if (in_place && w == comm.rank()) continue;
      auto& receive = receives[b * comm.workers() + w];
      pushed = co_await receive != 0 && pushed;
    }
    co_return pushed;
  }
  rg::task<> all_sent(std::size_t b) {
    for (std::uint32_t w = 0; w < comm.workers(); ++w) {
      auto& send = sends[b * comm.workers() + w];
      co_await send;
    }
  }
  void answer(std::size_t b) {
    for (std::uint32_t i = 0; i < comm.workers() && parts[b].range.count; ++i)
      if (const std::uint32_t w = comm.worker_in_turn(i); !(in_place && w == comm.rank()))
        sends[b * comm.workers() + w] = comm.send(w, parts[b].weights, lane_of(b), wire);
  }
  // Server 0 sums the norms in the order of servers and sends the sum to all servers.
  rg::task<> add_up_norms() {
    co_await comm.norm(total, rg::role::server);
    if (comm.server() == 0) {
      for (std::uint32_t s = 1; s < comm.servers(); ++s)
        co_await comm.recv_add(comm.server_rank(s), total, between_servers);
      for (std::uint32_t s = 1; s < comm.servers(); ++s)
        co_await comm.send(comm.server_rank(s), total, between_servers);
    } else {
      co_await comm.send(comm.server_rank(0), total, between_servers);
      co_await comm.recv(comm.server_rank(0), total, between_servers);
    }
  }

  rg::shards cut;
  std::size_t ahead;
  std::uint32_t wire;
  bool early, in_place;
  rg::role holder; // of a server's weights
  rg::table_client client;
  rg::table_server server;
  std::vector<rg::operation> pulls, pushes;   // of a worker: [bucket][server]
  std::vector<part> parts;                    // of a server: one per bucket
  std::vector<rg::operation> receives, sends; // of a server: [bucket][worker]
  rg_buffer total{};
  std::vector<rg::event> mine; // in place: a bucket's own gradients are complete and receives posted
  rg::event served;            // in place: all parts of a step have been updated
  bool leaving = false;        // in place: the worker has finished
  rg::task_group returning;
};

} // namespace

RG_PLUGIN("sync_ps", "0.1.0",
          rg::strategy<sync_ps>("sync_ps", "synchronous parameter server: push gradients, update there, pull weights"))

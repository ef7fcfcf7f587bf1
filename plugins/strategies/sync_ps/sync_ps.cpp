// SPDX-License-Identifier: Apache-2.0
//
// Synchronous parameter server (Li et al., Scaling Distributed Machine Learning with the Parameter Server, 2014,
// without its relaxations). Every bucket is cut into as many equal parts as there are servers, so each server holds the
// same number of bytes whatever the tensors' sizes, and all of them have work from the first bucket on. A worker pushes
// a part when its gradients are ready; the server adds the pushes up in the order of the workers, updates, and sends
// the new weights back, into place: this step reads them no more. Of sparse tables a worker pulls the rows that a step
// touches before it, and pushes their gradients after it (regatta/tables.hpp).
#include <regatta/tables.hpp>

namespace {

// A rank may be worker and server at once: what it sends in one role must not meet what it receives in the other.
enum : std::uint32_t { to_servers, to_workers, between_servers, rows_to_servers, rows_to_workers, lanes };

struct sync_ps {
  struct parameters {
    std::int64_t bucket = 4 << 20;
    std::int64_t ahead = 4;
  };
  static constexpr auto fields =
      rg::fields(rg::field("bucket", &parameters::bucket, "bytes of gradients pushed at once, over all servers")
                     .unit(RG_UNIT_BYTES)
                     .range(64, 1e10),
                 rg::field("ahead", &parameters::ahead, "buckets a server has receives posted for").range(1, 64));

  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SERVERS | RG_PLAN_SYNCHRONOUS | RG_PLAN_ROWS;
    plan.lanes = lanes;
    return plan;
  }
  // Workers talk to servers; servers to server 0, which adds up the norm where updates wait for it.
  static bool talks(const parameters&, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t *first = c.server_rank, *last = first + c.servers;
    const bool server_a = std::find(first, last, a) != last, server_b = std::find(first, last, b) != last;
    return (a < c.workers && server_b) || (b < c.workers && server_a) ||
           (server_a && server_b && (a == *first || b == *first));
  }

  sync_ps(rg::comm& c, const parameters& p)
      : comm(c), buckets(c.make_buckets(std::max<std::uint64_t>(p.bucket, 64 * c.servers()))),
        ahead(static_cast<std::size_t>(p.ahead)), client(c, rows_to_servers, rows_to_workers),
        server(c, rows_to_servers, rows_to_workers) {
    // Every server has a part of the first bucket: that is where it hears that a worker says goodbye. With tables it
    // hears it there.
    if (!c.tables() && rg::part_of(buckets[0], 0, c.servers()).count == 0)
      throw rg::error(RG_E_CONFIG, "the model has too few weights to be cut over " + std::to_string(c.servers()) +
                                       " servers: use at most " + std::to_string((c.arena().count + 15) / 16));
    if (c.is_worker()) {
      pulls.resize(buckets.size() * c.servers());
      pushes.resize(buckets.size() * c.servers());
    }
    if (!c.is_server()) return;
    std::uint64_t count = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) count += mine(b).count;
    const rg_buffer sums = c.alloc(std::max<std::uint64_t>(count, 16));
    total = c.alloc(2, RG_F64);
    std::uint64_t at = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const auto range = mine(b);
      parts.push_back({range, range.count ? c.own_as_server(range) : rg_buffer{}, rg::sub(sums, at, range.count)});
      at += range.count;
    }
    receives.resize(buckets.size() * c.workers());
    sends.resize(buckets.size() * c.workers());
  }

  // ------------------------------------------------------------------------------------------------- worker ---

  rg::task<> begin_step(std::uint64_t, rg::step_rows rows) { return client.pull(rows); }
  rg::task<> pull_rows(rg::step_rows rows) { return client.pull(rows, rg::row_request::pull); }
  // Asks for the weights before it pushes: the answer finds its receive posted and goes straight into place.
  void on_gradient(std::uint64_t, std::uint32_t b) {
    for (std::uint32_t s = 0; s < comm.servers(); ++s) {
      const auto range = part_of_server(b, s);
      if (!range.count) continue;
      pulls[b * comm.servers() + s] = comm.recv(comm.server_rank(s), comm.weights(range), to_workers);
      pushes[b * comm.servers() + s] = comm.send(comm.server_rank(s), comm.gradients(range), to_servers);
    }
  }
  rg::task<> end_step(std::uint64_t) {
    co_await client.push();
    for (auto& p : pushes) co_await p;
    for (auto& p : pulls) co_await p;
  }
  // A message of nothing in place of the first push says goodbye.
  rg::task<> finish() {
    if (comm.tables()) co_return co_await client.goodbye();
    for (std::uint32_t s = 0; s < comm.servers(); ++s)
      co_await comm.send(comm.server_rank(s), comm.gradients({0, 0}), to_servers);
  }

  // ------------------------------------------------------------------------------------------------- server ---

  rg::task<> serve() {
    for (std::uint64_t step = 0;; ++step) {
      if (comm.tables() && !co_await server.begin_step()) break;
      if (!buckets.empty()) post(0);
      // Everybody trains the same number of steps: where one says goodbye, all do.
      if (!comm.tables() && !co_await all_pushed(*this, 0)) break;
      for (std::size_t b = 1; b < std::min(ahead, buckets.size()); ++b) post(b);
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        if (b || comm.tables()) co_await all_pushed(*this, b);
        if (b + ahead < buckets.size()) post(b + ahead);
        if (!parts[b].range.count) continue;
        co_await all_sent(*this, b); // the last step's weights may still be under way
        co_await comm.apply_as_server(parts[b].range.first, parts[b].sum, step);
        if (!comm.deferred()) answer(b);
      }
      co_await server.end_step(step);
      if (comm.deferred()) {
        co_await add_up_norms(*this);
        co_await comm.commit(total, step, true);
        for (std::size_t b = 0; b < buckets.size(); ++b) answer(b);
      }
    }
    for (std::size_t b = 0; b < buckets.size(); ++b) co_await all_sent(*this, b);
  }

  rg::comm& comm;

private:
  struct part {
    rg::span_of_arena range;
    rg_buffer weights, sum;
  };

  rg::span_of_arena part_of_server(std::size_t b, std::uint32_t s) const {
    return rg::part_of(buckets[b], s, comm.servers());
  }
  rg::span_of_arena mine(std::size_t b) const {
    return part_of_server(b, static_cast<std::uint32_t>(comm.cluster().server));
  }

  // The first push overwrites the sum, the others add to it, in the order of the workers: the result depends on no
  // timing.
  void post(std::size_t b) {
    for (std::uint32_t w = 0; w < comm.workers(); ++w) {
      auto& r = receives[b * comm.workers() + w];
      if (parts[b].range.count)
        r = w ? comm.recv_add(w, parts[b].sum, to_servers) : comm.recv(w, parts[b].sum, to_servers);
    }
  }
  static rg::task<bool> all_pushed(sync_ps& self, std::size_t b) {
    bool pushed = true;
    for (std::uint32_t w = 0; w < self.comm.workers() && self.parts[b].range.count; ++w) {
      auto& receive = self.receives[b * self.comm.workers() + w];
      pushed = co_await receive != 0 && pushed;
    }
    co_return pushed;
  }
  static rg::task<> all_sent(sync_ps& self, std::size_t b) {
    for (std::uint32_t w = 0; w < self.comm.workers(); ++w) {
      auto& send = self.sends[b * self.comm.workers() + w];
      co_await send;
    }
  }
  void answer(std::size_t b) {
    for (std::uint32_t w = 0; w < comm.workers(); ++w)
      if (parts[b].range.count) sends[b * comm.workers() + w] = comm.send(w, parts[b].weights, to_workers);
  }
  // Server 0 adds up in the order of the servers and tells the sum to all.
  static rg::task<> add_up_norms(sync_ps& self) {
    rg::comm& comm = self.comm;
    co_await comm.norm(self.total, true);
    if (comm.cluster().server == 0) {
      for (std::uint32_t s = 1; s < comm.servers(); ++s)
        co_await comm.recv_add(comm.server_rank(s), self.total, between_servers);
      for (std::uint32_t s = 1; s < comm.servers(); ++s)
        co_await comm.send(comm.server_rank(s), self.total, between_servers);
    } else {
      co_await comm.send(comm.server_rank(0), self.total, between_servers);
      co_await comm.recv(comm.server_rank(0), self.total, between_servers);
    }
  }

  std::vector<rg::span_of_arena> buckets;
  std::size_t ahead;
  rg::table_client client;
  rg::table_server server;
  std::vector<rg::operation> pulls, pushes;   // of a worker: [bucket][server]
  std::vector<part> parts;                    // of a server: one a bucket
  std::vector<rg::operation> receives, sends; // of a server: [bucket][worker]
  rg_buffer total{};
};

} // namespace

RG_PLUGIN("sync_ps", "1.0",
          rg::strategy<sync_ps>("sync_ps", "synchronous parameter server: push gradients, update there, pull weights"))

// SPDX-License-Identifier: Apache-2.0
//
// Exchanges of the rows of sparse tables, for strategies. Either every worker holds all rows of each table
// (replicated_tables), or servers hold them, row r on server r mod S (table_client, table_server). docs/algorithms.md
// has the messages and their sizes. The rows of a step are known when it begins, their gradients when it ends.
//
// These classes read and write row numbers themselves, but no values: in simulations with ghosts, row numbers have
// bytes. Their constructors are for the strategy's constructor. Their coroutines throw rg::error if an operation fails,
// and do nothing for a model without sparse tables, except where a comment says otherwise.
#pragma once

#include <regatta/strategy.hpp>

#include <numeric>

namespace rg {

// Every worker holds all rows of each table. Each one adds up the gradients of all workers, in ascending order of rank,
// and makes the same update: the replicas are equal to the bit. For ranks that are workers. No other message between
// workers may be on `lane`.
class replicated_tables {
public:
  replicated_tables(rg::comm& c, std::uint32_t lane) : comm(c), lane_(lane), touched_(c.tables()) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) comm.own_rows(t, role::worker);
    if (comm.tables()) others_.resize(comm.workers());
    for (std::uint32_t w = 0; w < others_.size(); ++w) {
      if (w == comm.rank()) continue;
      for (std::uint32_t t = 0; t < comm.tables(); ++t) {
        const rg_table table = comm.table(t);
        others_[w].push_back(
            {comm.alloc_on_host(table.max_rows, RG_I64), comm.alloc_on_host(table.max_rows * table.row), 0, {}, {}});
      }
    }
  }

  // Begins to exchange row numbers with the other workers, within the call. The task provides the model with the rows
  // of the step.
  task<> begin_step(step_rows rows) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      touched_[t] = rows[t].size();
      for (std::uint32_t i = 1; i < comm.workers(); ++i) {
        const std::uint32_t w = staggered(i, comm.rank(), comm.workers(), comm.workers());
        others_[w][t].numbers_come = comm.recv(w, others_[w][t].numbers, lane_);
        numbers_go_.push_back(comm.send(w, comm.row_numbers(t, 0, touched_[t]), lane_));
      }
    }
    return pull_rows(rows);
  }
  // Provides the model with these rows, without an exchange: for passes whose gradients are not used, such as an
  // evaluation.
  task<> pull_rows(step_rows rows) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) co_await comm.rows_show(t, rows[t].size());
  }

  // Exchanges gradients with the other workers, and updates. Requires: begin_step() of this step was called, and the
  // gradients of all rows are final.
  task<> end_step(std::uint64_t step) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t)
      for (std::uint32_t i = 1; i < comm.workers(); ++i) {
        const std::uint32_t w = staggered(i, comm.rank(), comm.workers(), comm.workers());
        others_[w][t].gradients_come = comm.recv(w, others_[w][t].gradients, lane_);
        gradients_go_.push_back(comm.send(w, comm.row_gradients(t, 0, touched_[t]), lane_));
      }
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const std::uint64_t row = comm.table(t).row;
      const rg_buffer mine = comm.row_numbers(t, 0, touched_[t]), gradients = comm.row_gradients(t, 0, touched_[t]);
      if (comm.workers() == 1) {
        co_await comm.rows_apply(t, mine, gradients, step, role::worker);
        continue;
      }
      for (std::uint32_t w = 0; w < comm.workers(); ++w) {
        if (w == comm.rank()) {
          co_await comm.rows_add(t, mine, gradients, role::worker);
          continue;
        }
        part& p = others_[w][t];
        p.count = co_await p.numbers_come / sizeof(std::int64_t);
        co_await p.gradients_come;
        co_await comm.rows_add(t, sub(p.numbers, 0, p.count), sub(p.gradients, 0, p.count * row), role::worker);
      }
      co_await comm.rows_apply(t, step, role::worker);
    }
    for (auto& sent : numbers_go_) co_await sent;
    for (auto& sent : gradients_go_) co_await sent;
    numbers_go_.clear();
    gradients_go_.clear();
  }

  rg::comm& comm;

private:
  struct part { // one table's rows of another worker
    rg_buffer numbers, gradients;
    std::uint64_t count;
    operation numbers_come, gradients_come;
  };
  std::uint32_t lane_;
  std::vector<std::uint64_t> touched_;    // [table]: rows that this worker touches in this step
  std::vector<std::vector<part>> others_; // [worker][table]
  std::vector<operation> numbers_go_, gradients_go_;
};

// The purpose of a worker's request to a server. A request is one message: the purpose, the number of rows of each
// table, and the row numbers, table by table. The server answers with one message, the rows' weights in the same order;
// the push is one message with their gradients. If the request has no rows, there is neither an answer nor a push. A
// goodbye is the purpose alone. step: the rows of a training step, whose gradients are pushed later. pull: rows that
// are only read, such as in an evaluation.
enum class row_request : std::int64_t { step = 1, pull = 2, goodbye = 3 };

// A worker's side, if servers hold the tables. No other messages may be on the lanes `to_servers` and `to_workers`,
// which differ. The order is pull(), push() in each step, pull(rows, row_request::pull) between steps, and at last
// goodbye().
class table_client {
public:
  table_client(rg::comm& c, std::uint32_t to_servers, std::uint32_t to_workers)
      : comm(c), to_servers_(to_servers), to_workers_(to_workers) {
    if (!comm.tables() || !comm.is_worker()) return;
    parts_.resize(comm.servers());
    std::uint64_t rows = 0, elements = 0;
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      rows += comm.table(t).max_rows;
      elements += comm.table(t).max_rows * comm.table(t).row;
    }
    requests_ = comm.alloc_on_host(comm.servers() * header() + rows, RG_I64);
    indices_ = comm.alloc_on_host(rows, RG_I64);
    values_ = comm.alloc_on_host(elements);
  }

  // Requests rows from the servers and copies them to the windows of the tables. row_request::step: push() follows, and
  // the server counts a step; row_request::pull: no push follows.
  task<> pull(step_rows rows, row_request why = row_request::step) {
    if (!comm.tables()) co_return;
    lay_out(rows, why);
    for (std::uint32_t i = 0; i < comm.servers(); ++i) {
      const std::uint32_t s = comm.server_in_turn(i);
      part& p = parts_[s];
      if (p.values.count) p.answer = comm.recv(comm.server_rank(s), p.values, to_workers_);
      p.sent = comm.send(comm.server_rank(s), p.request, to_servers_);
    }
    for (part& p : parts_) {
      co_await p.answer;
      std::uint64_t row = 0, element = 0;
      for (std::uint32_t t = 0; t < comm.tables(); row += p.counts[t], element += p.counts[t] * comm.table(t).row, ++t)
        if (p.counts[t])
          co_await comm.scatter(comm.row_weights(t, 0, comm.table(t).max_rows), sub(p.indices, row, p.counts[t]),
                                sub(p.values, element, p.counts[t] * comm.table(t).row));
      co_await p.sent;
    }
  }
  // Sends the gradients of the rows of the last pull(). Requires that this was a pull() with row_request::step, and
  // that the gradients are final. Ends when they have been sent.
  task<> push() {
    if (!comm.tables()) co_return;
    for (std::uint32_t i = 0; i < comm.servers(); ++i) {
      const std::uint32_t s = comm.server_in_turn(i);
      part& p = parts_[s];
      if (!p.values.count) continue;
      std::uint64_t row = 0, element = 0;
      for (std::uint32_t t = 0; t < comm.tables(); row += p.counts[t], element += p.counts[t] * comm.table(t).row, ++t)
        if (p.counts[t])
          co_await comm.gather(sub(p.values, element, p.counts[t] * comm.table(t).row),
                               comm.row_gradients(t, 0, comm.table(t).max_rows), sub(p.indices, row, p.counts[t]));
      p.sent = comm.send(comm.server_rank(s), p.values, to_servers_);
    }
    for (part& p : parts_) co_await p.sent;
  }
  // Reports to all servers that this worker sends no further request. Requires sparse tables.
  task<> goodbye() {
    for (std::uint32_t s = 0; s < comm.servers(); ++s) {
      const rg_buffer word = sub(requests_, s, 1);
      comm.elements<std::int64_t>(word)[0] = static_cast<std::int64_t>(row_request::goodbye);
      parts_[s].sent = comm.send(comm.server_rank(s), word, to_servers_);
    }
    for (part& p : parts_) co_await p.sent;
  }

  rg::comm& comm;

private:
  struct part {                        // the exchange with one server
    std::vector<std::uint64_t> counts; // [table]: rows
    rg_buffer request{}, indices{}, values{};
    operation answer, sent;
  };
  std::uint64_t header() const { return 1 + comm.tables(); }

  // Distributes the rows over the servers' requests. The parts of all servers are consecutive in each buffer.
  void lay_out(step_rows rows, row_request why) {
    const std::uint64_t servers = std::max(comm.servers(), 1u);
    for (part& p : parts_) p.counts.assign(comm.tables(), 0);
    for (std::uint32_t t = 0; t < comm.tables(); ++t)
      for (const std::uint64_t r : rows[t]) ++parts_[r % servers].counts[t];
    const auto requests = comm.elements<std::int64_t>(requests_), indices = comm.elements<std::int64_t>(indices_);
    std::uint64_t request = 0, place = 0, element = 0;
    for (part& p : parts_) {
      const std::uint64_t count = std::accumulate(p.counts.begin(), p.counts.end(), std::uint64_t{0});
      std::uint64_t elements = 0;
      for (std::uint32_t t = 0; t < comm.tables(); ++t) elements += p.counts[t] * comm.table(t).row;
      p.request = sub(requests_, request, header() + count);
      p.indices = sub(indices_, place, count);
      p.values = sub(values_, element, elements);
      requests[request] = static_cast<std::int64_t>(why);
      for (std::uint32_t t = 0; t < comm.tables(); ++t)
        requests[request + 1 + t] = static_cast<std::int64_t>(p.counts[t]);
      request += header() + count;
      place += count;
      element += elements;
    }
    // For each server the next free element in `requests` and in `indices`.
    ends_.assign(2 * servers, 0);
    std::uint64_t at = 0, from = 0;
    for (std::uint64_t s = 0; s < servers; ++s) {
      ends_[2 * s] = at + header();
      ends_[2 * s + 1] = from;
      at += parts_[s].request.count;
      from += parts_[s].indices.count;
    }
    for (std::uint32_t t = 0; t < comm.tables(); ++t)
      for (std::size_t i = 0; i < rows[t].size(); ++i) {
        const std::uint64_t s = rows[t][i] % servers;
        requests[ends_[2 * s]++] = static_cast<std::int64_t>(rows[t][i]);
        indices[ends_[2 * s + 1]++] = static_cast<std::int64_t>(i);
      }
  }

  std::uint32_t to_servers_, to_workers_;
  std::vector<part> parts_;
  rg_buffer requests_{}, indices_{}, values_{};
  std::vector<std::uint64_t> ends_;
};

// A server's side: it holds the rows r with r mod servers == its number. The lanes are those of table_client. For ranks
// that are servers. A synchronous strategy uses begin_step() and end_step(); others answer() each worker, then
// receive() and apply_of().
class table_server {
public:
  table_server(rg::comm& c, std::uint32_t to_servers, std::uint32_t to_workers)
      : comm(c), to_servers_(to_servers), to_workers_(to_workers) {
    if (!comm.tables() || !comm.is_server()) return;
    workers_.resize(comm.workers());
    std::uint64_t rows = 0, elements = 0;
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const rg_table table = comm.table(t);
      const std::uint64_t most = std::min(table.max_rows, (table.rows + comm.servers() - 1) / comm.servers());
      rows += most;
      elements += most * table.row;
      comm.own_rows(t, role::server, comm.servers(), comm.server());
    }
    for (part& p : workers_) {
      p.request = comm.alloc_on_host(1 + comm.tables() + rows, RG_I64);
      p.values = comm.alloc_on_host(elements);
    }
  }

  // Receives the next request of worker w and returns its purpose. Its row numbers stay valid until the next call for
  // w. Requires sparse tables.
  task<row_request> receive_request(std::uint32_t w) {
    part& p = workers_[w];
    co_await comm.recv(w, p.request, to_servers_);
    co_return static_cast<row_request>(comm.elements<std::int64_t>(p.request)[0]);
  }
  // Sends worker w the weights of the rows that its last request names. Requires receive_request(w).
  task<> send_rows(std::uint32_t w) {
    part& p = workers_[w];
    const auto words = comm.elements<std::int64_t>(p.request);
    p.elements = 0;
    std::uint64_t row = 1 + comm.tables();
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const auto n = static_cast<std::uint64_t>(words[1 + t]), elements = n * comm.table(t).row;
      if (n) co_await comm.rows_read(t, sub(p.request, row, n), sub(p.values, p.elements, elements), role::server);
      row += n;
      p.elements += elements;
    }
    if (p.elements) co_await comm.send(w, sub(p.values, 0, p.elements), to_workers_);
  }
  // Receives and answers worker w's requests, until it has sent the rows of a step (returns true) or received a goodbye
  // (returns false). Requires sparse tables.
  task<bool> answer(std::uint32_t w) {
    for (;;) {
      const row_request why = co_await receive_request(w);
      if (why == row_request::goodbye) co_return false;
      co_await send_rows(w);
      if (why == row_request::step) co_return true;
    }
  }
  // Calls answer() for all workers concurrently. Returns true once each has the rows of its next step, and false if
  // they say goodbye instead: all train for the same number of steps. Requires sparse tables.
  task<bool> begin_step() {
    stay_ = true;
    for (std::uint32_t w = 0; w < comm.workers(); ++w) answering_.spawn(answer_one(w));
    co_await answering_.join();
    co_return stay_;
  }
  // receive() receives worker w's gradients of the rows that it was last sent. Then either add() adds them to the
  // pending gradients, from which apply() makes one update for all workers; or apply_of() makes an update of them
  // alone.
  task<> receive(std::uint32_t w) {
    part& p = workers_[w];
    if (p.elements) co_await comm.recv(w, sub(p.values, 0, p.elements), to_servers_);
  }
  task<> add(std::uint32_t w) {
    for (const slice& s : slices_of(w)) co_await comm.rows_add(s.table, s.numbers, s.gradients, role::server);
  }
  task<> apply_of(std::uint32_t w, std::uint64_t step) {
    for (const slice& s : slices_of(w)) co_await comm.rows_apply(s.table, s.numbers, s.gradients, step, role::server);
  }
  task<> apply(std::uint64_t step) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) co_await comm.rows_apply(t, step, role::server);
  }
  // Ends a synchronous step: adds the gradients of all workers, in ascending order, and updates.
  task<> end_step(std::uint64_t step) {
    if (!comm.tables()) co_return;
    for (std::uint32_t w = 0; w < comm.workers(); ++w) {
      co_await receive(w);
      co_await add(w);
    }
    co_await apply(step);
  }

  rg::comm& comm;

private:
  struct slice { // one table's part of a worker's request, and its gradients
    std::uint32_t table;
    rg_buffer numbers, gradients;
  };
  struct part { // the exchange with one worker
    rg_buffer request{}, values{};
    std::uint64_t elements = 0; // in the last answer
    std::vector<slice> slices;
  };
  // Returns the slices of worker w's last request, without the tables of which it names no rows. Valid until the next
  // call for w.
  const std::vector<slice>& slices_of(std::uint32_t w) {
    part& p = workers_[w];
    const auto words = comm.elements<std::int64_t>(p.request);
    std::uint64_t row = 1 + comm.tables(), element = 0;
    p.slices.clear();
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const auto n = static_cast<std::uint64_t>(words[1 + t]), elements = n * comm.table(t).row;
      if (n) p.slices.push_back({t, sub(p.request, row, n), sub(p.values, element, elements)});
      row += n;
      element += elements;
    }
    return p.slices;
  }
  task<> answer_one(std::uint32_t w) {
    const bool stays = co_await answer(w);
    stay_ = stay_ && stays;
  }

  std::uint32_t to_servers_, to_workers_;
  std::vector<part> workers_;
  bool stay_ = true;
  task_group answering_;
};

} // namespace rg

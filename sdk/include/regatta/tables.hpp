// SPDX-License-Identifier: Apache-2.0
//
// Exchanges of the rows of sparse tables, for strategies: every worker holds the whole of each table
// (replicated_tables), or servers hold its rows, r on server r mod S (table_client, table_server). Messages and bytes
// are in docs/algorithms.md. What a step touches is known when it begins, its gradients when it ends.
//
// They copy row numbers with code of their own, so they need bytes: a host without (ghosts) refuses.
#pragma once

#include <regatta/strategy.hpp>

#include <numeric>

namespace rg {

// Every worker holds every row, adds up the gradients of all workers in the order of their ranks, and makes the same
// update: replicas stay identical to the bit. `lane` is used by nothing else.
class replicated_tables {
public:
  replicated_tables(rg::comm& c, std::uint32_t lane) : comm(c), lane_(lane), touched_(c.tables()) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) comm.own_rows(t, role::worker);
    others_.resize(comm.workers());
    for (std::uint32_t w = 0; w < comm.workers() && comm.tables(); ++w) {
      if (w == comm.rank()) continue;
      for (std::uint32_t t = 0; t < comm.tables(); ++t) {
        const rg_table table = comm.table(t);
        others_[w].push_back(
            {comm.alloc_on_host(table.max_rows, RG_I64), comm.alloc_on_host(table.max_rows * table.row), 0, {}, {}});
      }
    }
  }

  // Brings the rows of the step, and begins to tell the others their numbers.
  task<> begin_step(step_rows rows) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      touched_[t] = rows[t].size();
      for (std::uint32_t w = 0; w < comm.workers(); ++w) {
        if (w == comm.rank()) continue;
        others_[w][t].numbers_come = comm.recv(w, others_[w][t].numbers, lane_);
        numbers_go_.push_back(comm.send(w, comm.row_numbers(t, 0, touched_[t]), lane_));
      }
    }
    return pull_rows(rows);
  }
  task<> pull_rows(step_rows rows) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) co_await comm.rows_show(t, rows[t].size());
  }

  // Gradients are complete: gathers those of all workers and updates.
  task<> end_step(std::uint64_t step) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t)
      for (std::uint32_t w = 0; w < comm.workers(); ++w) {
        if (w == comm.rank()) continue;
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
  struct part { // of one table, of another worker
    rg_buffer numbers, gradients;
    std::uint64_t count;
    operation numbers_come, gradients_come;
  };
  std::uint32_t lane_;
  std::vector<std::uint64_t> touched_;    // own rows of this step, by table
  std::vector<std::vector<part>> others_; // [worker][table]
  std::vector<operation> numbers_go_, gradients_go_;
};

// What a worker asks of a server, one message: what for, how many rows of each table, their numbers table by table.
// The answer is one message with the rows' weights in the same order; the push one with their gradients. Where no row
// was asked for, neither is sent.
enum class row_request : std::int64_t { step = 1, pull = 2, goodbye = 3 };

// A worker of servers that hold the tables. `to_servers` and `to_workers` are lanes used by nothing else.
class table_client {
public:
  table_client(rg::comm& c, std::uint32_t to_servers, std::uint32_t to_workers)
      : comm(c), to_servers_(to_servers), to_workers_(to_workers), parts_(c.servers()) {
    if (!comm.tables() || !comm.is_worker()) return;
    std::uint64_t rows = 0, elements = 0;
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      rows += comm.table(t).max_rows;
      elements += comm.table(t).max_rows * comm.table(t).row;
    }
    requests_ = comm.alloc_on_host(comm.servers() * header() + rows, RG_I64);
    places_ = comm.alloc_on_host(rows, RG_I64);
    values_ = comm.alloc_on_host(elements);
  }

  // Brings rows into the windows of the tables.
  task<> pull(step_rows rows, row_request why = row_request::step) {
    if (!comm.tables()) co_return;
    lay_out(rows, why);
    for (std::uint32_t s = 0; s < comm.servers(); ++s) {
      part& p = parts_[s];
      if (p.values.count) p.answer = comm.recv(comm.server_rank(s), p.values, to_workers_);
      p.sent = comm.send(comm.server_rank(s), p.request, to_servers_);
    }
    for (part& p : parts_) {
      co_await p.answer;
      std::uint64_t row = 0, element = 0;
      for (std::uint32_t t = 0; t < comm.tables(); row += p.counts[t], element += p.counts[t] * comm.table(t).row, ++t)
        if (p.counts[t])
          co_await comm.scatter(comm.row_weights(t, 0, comm.table(t).max_rows), sub(p.places, row, p.counts[t]),
                                sub(p.values, element, p.counts[t] * comm.table(t).row));
      co_await p.sent;
    }
  }
  // Sends the gradients of the rows last pulled.
  task<> push() {
    for (std::uint32_t s = 0; s < comm.servers(); ++s) {
      part& p = parts_[s];
      if (!p.values.count) continue;
      std::uint64_t row = 0, element = 0;
      for (std::uint32_t t = 0; t < comm.tables(); row += p.counts[t], element += p.counts[t] * comm.table(t).row, ++t)
        if (p.counts[t])
          co_await comm.gather(sub(p.values, element, p.counts[t] * comm.table(t).row),
                               comm.row_gradients(t, 0, comm.table(t).max_rows), sub(p.places, row, p.counts[t]));
      p.sent = comm.send(comm.server_rank(s), p.values, to_servers_);
    }
    for (part& p : parts_) co_await p.sent;
  }
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
  struct part {                        // of one server
    std::vector<std::uint64_t> counts; // by table
    rg_buffer request{}, places{}, values{};
    operation answer, sent;
  };
  std::uint64_t header() const { return 1 + comm.tables(); }

  // Cuts the rows by server; all servers' parts lie one after the other.
  void lay_out(step_rows rows, row_request why) {
    const std::uint64_t servers = std::max(comm.servers(), 1u);
    for (part& p : parts_) p.counts.assign(comm.tables(), 0);
    for (std::uint32_t t = 0; t < comm.tables(); ++t)
      for (const std::uint64_t r : rows[t]) ++parts_[r % servers].counts[t];
    const auto requests = comm.elements<std::int64_t>(requests_), places = comm.elements<std::int64_t>(places_);
    std::uint64_t request = 0, place = 0, element = 0;
    for (part& p : parts_) {
      const std::uint64_t count = std::accumulate(p.counts.begin(), p.counts.end(), std::uint64_t{0});
      std::uint64_t elements = 0;
      for (std::uint32_t t = 0; t < comm.tables(); ++t) elements += p.counts[t] * comm.table(t).row;
      p.request = sub(requests_, request, header() + count);
      p.places = sub(places_, place, count);
      p.values = sub(values_, element, elements);
      requests[request] = static_cast<std::int64_t>(why);
      for (std::uint32_t t = 0; t < comm.tables(); ++t)
        requests[request + 1 + t] = static_cast<std::int64_t>(p.counts[t]);
      request += header() + count;
      place += count;
      element += elements;
    }
    // The next free place of every server; numbers and places advance together.
    ends_.assign(2 * servers, 0);
    std::uint64_t at = 0, from = 0;
    for (std::uint64_t s = 0; s < servers; ++s) {
      ends_[2 * s] = at + header();
      ends_[2 * s + 1] = from;
      at += parts_[s].request.count;
      from += parts_[s].places.count;
    }
    for (std::uint32_t t = 0; t < comm.tables(); ++t)
      for (std::size_t i = 0; i < rows[t].size(); ++i) {
        const std::uint64_t s = rows[t][i] % servers;
        requests[ends_[2 * s]++] = static_cast<std::int64_t>(rows[t][i]);
        places[ends_[2 * s + 1]++] = static_cast<std::int64_t>(i);
      }
  }

  std::uint32_t to_servers_, to_workers_;
  std::vector<part> parts_;
  rg_buffer requests_{}, places_{}, values_{};
  std::vector<std::uint64_t> ends_;
};

// A server of tables: holds the rows r with r mod servers == its number.
class table_server {
public:
  table_server(rg::comm& c, std::uint32_t to_servers, std::uint32_t to_workers)
      : comm(c), to_servers_(to_servers), to_workers_(to_workers), workers_(c.workers()) {
    if (!comm.tables() || !comm.is_server()) return;
    std::uint64_t rows = 0, elements = 0;
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const rg_table table = comm.table(t);
      const std::uint64_t most = std::min(table.max_rows, (table.rows + comm.servers() - 1) / comm.servers());
      rows += most;
      elements += most * table.row;
      comm.own_rows(t, role::server, comm.servers(), static_cast<std::uint64_t>(comm.cluster().server));
    }
    for (part& p : workers_) {
      p.request = comm.alloc_on_host(1 + comm.tables() + rows, RG_I64);
      p.values = comm.alloc_on_host(elements);
    }
  }

  // What worker w asks next. Its rows, which tell() sends, are good until it is asked again.
  task<row_request> asked(std::uint32_t w) {
    part& p = workers_[w];
    co_await comm.recv(w, p.request, to_servers_);
    co_return static_cast<row_request>(comm.elements<std::int64_t>(p.request)[0]);
  }
  task<> tell(std::uint32_t w) {
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
  // Answers worker w until it begins a step (true) or says goodbye (false).
  task<bool> answer(std::uint32_t w) {
    for (;;) {
      const row_request why = co_await asked(w);
      if (why == row_request::goodbye) co_return false;
      co_await tell(w);
      if (why == row_request::step) co_return true;
    }
  }
  // Answers all workers side by side; false once they have said goodbye: all train the same number of steps.
  task<bool> begin_step() {
    stay_ = true;
    for (std::uint32_t w = 0; w < comm.workers(); ++w) answering_.spawn(answer_one(*this, w));
    co_await answering_.join();
    co_return stay_;
  }
  // Worker w's gradients of what it was last told, in three steps: they come, and are added to those of others or, by
  // apply_of(), make an update of their own.
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
  // A synchronous step's end: all gradients, in the order of the workers, and the update.
  task<> end_step(std::uint64_t step) {
    for (std::uint32_t w = 0; w < comm.workers(); ++w) {
      co_await receive(w);
      co_await add(w);
    }
    co_await apply(step);
  }

  rg::comm& comm;

private:
  struct slice { // of one table, what a worker was told and gave gradients of
    std::uint32_t table;
    rg_buffer numbers, gradients;
  };
  struct part { // of one worker
    rg_buffer request{}, values{};
    std::uint64_t elements = 0; // of the last answer
    std::vector<slice> slices;
  };
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
  static task<> answer_one(table_server& self, std::uint32_t w) {
    const bool stays = co_await self.answer(w);
    self.stay_ = self.stay_ && stays;
  }

  std::uint32_t to_servers_, to_workers_;
  std::vector<part> workers_;
  bool stay_ = true;
  task_group answering_;
};

} // namespace rg

// SPDX-License-Identifier: Apache-2.0
//
// Rows of sparse tables under GEO-SGD. A worker keeps a copy of every row that it has seen, and trains on it. At the
// end of a period it pushes the difference of each row that it touched. A server (row r is on server r mod S) adds the
// difference, divided by the number of workers. It answers with all rows that any worker has pushed since its last
// answer to this worker, so that copies of rows that other workers touch are refreshed, too.
//
// The parameter `merge` says how the worker merges an answer, as for dense weights: "replace" sets its copy of the row
// to the server's value; "add" adds to its copy the change of the server's value since the last exchange, so that its
// own progress stays. With "add", the worker also stores the servers' value of every row that it has seen, which takes
// the memory of a second copy.
//
// In both directions a period is any number of chunks, each of one table, then an end. A chunk is two messages: a
// header (kind, table, number of rows) with the row numbers, 64 bits each; and the rows' values. Memory does not grow
// with the length of a period, except for row numbers and, on a worker with "replace", the rows' values at its start.
#pragma once

#include <regatta/strategy.hpp>

#include <bit>
#include <limits>
#include <utility>
#include <vector>

namespace geo {

// The kind of a message: a chunk; the end of a period; a worker has finished and pushes no more.
enum class message_kind : std::int64_t { chunk = 1, end = 2, goodbye = 3 };
constexpr std::uint64_t header = 3; // kind, table, count

// Host memory for one chunk: `message` is the header and the row numbers, `values` [rows, row] their values. Construct
// it in the strategy's constructor.
struct chunk {
  chunk(rg::comm& c, std::uint64_t rows, std::uint64_t elements)
      : message(c.alloc_on_host(header + rows, RG_I64)), values(c.alloc_on_host(elements)) {}
  rg_buffer message, values;
};
// Returns the most rows of table t in one chunk: as many as fit in 1 MiB, at least 1.
inline std::uint64_t rows_at_once(const rg_table& t) {
  return std::clamp<std::uint64_t>((1 << 18) / t.row, 1, t.rows);
}
// Returns memory that is large enough for a chunk of any table.
inline chunk make_chunk(rg::comm& c) {
  std::uint64_t rows = 0, elements = 0;
  for (std::uint32_t t = 0; t < c.tables(); ++t) {
    const rg_table table = c.table(t);
    rows = std::max(rows, rows_at_once(table));
    elements = std::max(elements, rows_at_once(table) * table.row);
  }
  return {c, rows, elements};
}
// Returns the first `count` row numbers of a chunk.
inline rg_buffer numbers_in(const chunk& p, std::uint64_t count) {
  return rg::sub(p.message, header, count);
}

// Writes the header and sends a chunk of `count` rows, whose numbers and values are in `p`; or `end` or `goodbye`,
// which consist of the header only (`table` and `count` are 0). `p` may be reused once the task has ended.
inline rg::task<> send(rg::comm& comm, std::uint32_t peer, const chunk& p, message_kind kind, std::uint32_t table,
                       std::uint64_t count, std::uint32_t lane) {
  const auto words = comm.elements<std::int64_t>(p.message);
  words[0] = static_cast<std::int64_t>(kind);
  words[1] = table;
  words[2] = static_cast<std::int64_t>(count);
  co_await comm.send(peer, rg::sub(p.message, 0, header + count), lane);
  if (count) co_await comm.send(peer, rg::sub(p.values, 0, count * comm.table(table).row), lane);
}
struct received {
  message_kind kind;
  std::uint32_t table;
  rg_buffer numbers, values;
};
// Receives a chunk, `end` or `goodbye` into the memory of `p`, to which the result points until `p` is used again.
inline rg::task<received> receive(rg::comm& comm, std::uint32_t peer, const chunk& p, std::uint32_t lane) {
  co_await comm.recv(peer, p.message, lane);
  const auto words = comm.elements<std::int64_t>(p.message);
  const auto count = static_cast<std::uint64_t>(words[2]);
  received r{static_cast<message_kind>(words[0]), static_cast<std::uint32_t>(words[1]), numbers_in(p, count), {}};
  if (count) r.values = rg::sub(p.values, 0, count * comm.table(r.table).row);
  if (count) co_await comm.recv(peer, r.values, lane);
  co_return r;
}

// Row numbers in the order of insertion, each once: a hash table with linear probing. clear() keeps its memory.
class row_index {
public:
  struct found {
    std::size_t index; // in the order of insertion
    bool is_new;
  };
  // Adds the row unless it is there already; returns its index.
  found insert(std::uint64_t row) {
    if (2 * (rows_.size() + 1) > slots_.size()) grow();
    std::size_t& slot = slot_of(row);
    if (slot != none) return {slot, false};
    slot = rows_.size();
    rows_.push_back(row);
    return {slot, true};
  }
  std::uint64_t operator[](std::size_t index) const { return rows_[index]; }
  void clear() {
    std::fill(slots_.begin(), slots_.end(), none);
    rows_.clear();
  }

private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  // The slot of the row, or the free slot where it belongs.
  std::size_t& slot_of(std::uint64_t row) {
    const int bits = std::countr_zero(slots_.size());
    const std::size_t mask = slots_.size() - 1;
    // Multiplicative hashing: Knuth, The Art of Computer Programming 3, section 6.4.
    std::size_t at = (row * 0x9E3779B97F4A7C15) >> (64 - bits);
    while (slots_[at] != none && rows_[slots_[at]] != row) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    slots_.assign(std::max<std::size_t>(1024, 2 * slots_.size()), none);
    for (std::size_t index = 0; index < rows_.size(); ++index) slot_of(rows_[index]) = index;
  }

  std::vector<std::size_t> slots_; // indices into rows_; the number of slots is a power of two
  std::vector<std::uint64_t> rows_;
};

// The worker's side. It does nothing if the model has no sparse tables.
class row_worker {
public:
  // Call it in the strategy's constructor, on every rank; only a worker allocates memory. `adds`: merge is "add".
  // `to_servers` and `to_workers` are the lanes of pushes and of answers.
  row_worker(rg::comm& c, bool adds, std::uint32_t to_servers, std::uint32_t to_workers)
      : comm(c), adds_(adds), to_servers_(to_servers), to_workers_(to_workers), copies_(c.tables()) {
    if (!comm.tables() || !comm.is_worker()) return;
    for (std::uint32_t t = 0; t < comm.tables(); ++t) comm.own_rows(t, rg::role::worker);
    for (std::uint32_t s = 0; s < comm.servers(); ++s) {
      chunks_.push_back(make_chunk(comm));
      own_.push_back(make_chunk(comm).values);
    }
  }

  // Copies rows from the worker's own copy to the weights' windows of the step. Sends nothing.
  rg::task<> read(rg::step_rows rows) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const std::uint64_t n = rows[t].size();
      co_await comm.rows_read(t, comm.row_numbers(t, 0, n), comm.row_weights(t, 0, n), rg::role::worker);
    }
  }
  // As read(), for the rows of a training step; also marks them as touched, so that exchange() pushes them.
  rg::task<> begin_step(rg::step_rows rows) {
    co_await read(rows);
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      copy& c = copies_[t];
      c.now = rows[t].size();
      const std::uint64_t row = comm.table(t).row;
      const auto weights = values_of(comm.row_weights(t, 0, c.now));
      for (std::uint64_t i = 0; i < c.now; ++i) {
        const std::size_t index = remember(c, rows[t][i], row_of(weights, i, row));
        if (c.touched_in[index] == period_) continue;
        c.touched_in[index] = period_;
        c.touched.push_back(index);
      }
    }
  }
  // Updates the worker's own copy of the step's rows by the mean gradient over its own batch. Call it at the end of
  // each step that begin_step() began.
  rg::task<> update(std::uint64_t step) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const rg_buffer gradients = comm.row_gradients(t, 0, copies_[t].now);
      co_await comm.scale(gradients, comm.workers());
      co_await comm.rows_apply(t, comm.row_numbers(t, 0, copies_[t].now), gradients, step, rg::role::worker);
    }
  }
  // Ends a period: pushes the differences of touched rows to all servers concurrently, and merges their answers.
  rg::task<> exchange() {
    for (std::uint32_t i = 0; i < comm.servers() && comm.tables(); ++i)
      exchanging_.spawn(exchange_with(comm.server_in_turn(i)));
    co_await exchanging_.join();
    ++period_;
    for (copy& c : copies_) {
      c.touched.clear();
      if (adds_) continue;
      c.rows.clear();
      c.old.clear();
      c.touched_in.clear();
    }
  }
  // Tells all servers that this worker has finished. Call it once, after the last exchange().
  rg::task<> goodbye() {
    for (std::uint32_t s = 0; s < comm.servers() && comm.tables(); ++s)
      co_await send(comm, comm.server_rank(s), chunks_[s], message_kind::goodbye, 0, 0, to_servers_);
  }

  rg::comm& comm;

private:
  // The copy of one table. A row's index is that in `rows`.
  struct copy {
    row_index rows;         // "add": seen by this worker; "replace": touched in this period
    std::vector<float> old; // by index: "add": the servers' value as known; "replace": at the period's start
    std::vector<std::uint64_t> touched_in; // by index: the last period in which it was touched
    std::vector<std::size_t> touched;      // indices touched in this period, in that order
    std::uint64_t now = 0;                 // rows of this step
  };

  // Returns the values in a buffer. Those of ghosts have no bytes (a simulation): none then, also for each of their
  // rows, and only row numbers are kept.
  std::span<float> values_of(rg_buffer b) const {
    float* const first = comm.pointer<float>(b);
    return first ? std::span(first, b.count) : std::span<float>();
  }
  template <class T> static std::span<T> row_of(std::span<T> values, std::size_t index, std::uint64_t row) {
    return values.empty() ? values : values.subspan(index * row, row);
  }
  // Returns the row's index. A new row gets `value` as its old value.
  static std::size_t remember(copy& c, std::uint64_t row, std::span<const float> value) {
    const auto [index, is_new] = c.rows.insert(row);
    if (is_new) {
      c.old.insert(c.old.end(), value.begin(), value.end());
      c.touched_in.push_back(0);
    }
    return index;
  }
  static std::span<float> old_of(copy& c, std::size_t index, std::uint64_t row) {
    return row_of(std::span(c.old), index, row);
  }

  rg::task<> exchange_with(std::uint32_t server) {
    const std::uint32_t peer = comm.server_rank(server);
    const chunk& p = chunks_[server];
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      for (std::size_t next = 0; next < copies_[t].touched.size();) {
        const std::uint64_t count = co_await fill(t, server, next);
        if (count) co_await send(comm, peer, p, message_kind::chunk, t, count, to_servers_);
      }
    }
    co_await send(comm, peer, p, message_kind::end, 0, 0, to_servers_);
    for (;;) {
      const received r = co_await receive(comm, peer, p, to_workers_);
      if (r.kind == message_kind::end) co_return;
      co_await merge(server, r);
    }
  }
  // Adds (server's value - old value) to own rows; with "replace", old is the current value.
  rg::task<> merge(std::uint32_t server, received r) {
    const std::uint64_t row = comm.table(r.table).row;
    const rg_buffer old = rg::sub(own_[server], 0, r.values.count);
    co_await comm.rows_read(r.table, r.numbers, old, rg::role::worker);
    if (adds_) { // for rows that were never seen, the value just read is the old value
      copy& c = copies_[r.table];
      const auto numbers = comm.elements<std::int64_t>(r.numbers);
      const auto was = values_of(old), is = values_of(r.values);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto mine = row_of(was, i, row), theirs = row_of(is, i, row);
        const std::size_t index = remember(c, static_cast<std::uint64_t>(numbers[i]), mine);
        const auto known = old_of(c, index, row);
        std::copy(known.begin(), known.end(), mine.begin());
        std::copy(theirs.begin(), theirs.end(), known.begin());
      }
    }
    co_await comm.axpy(old, -1, r.values);
    co_await comm.rows_write(r.table, r.numbers, -1, old, rg::role::worker);
  }
  // Fills a chunk with the next touched rows of this server, from touched[next] on, and with their differences, and
  // advances `next`. With "add", the differences are divided by the number of workers and added to the old values, as
  // the server will do. Returns the number of rows.
  rg::task<std::uint64_t> fill(std::uint32_t t, std::uint32_t server, std::size_t& next) {
    copy& c = copies_[t];
    const rg_table table = comm.table(t);
    const chunk& p = chunks_[server];
    const std::uint64_t most = rows_at_once(table);
    const auto old = values_of(rg::sub(own_[server], 0, most * table.row));
    const auto numbers = comm.elements<std::int64_t>(numbers_in(p, most));
    const std::size_t first = next;
    std::uint64_t count = 0;
    for (; next < c.touched.size() && count < most; ++next) {
      const std::uint64_t row = c.rows[c.touched[next]];
      if (row % comm.servers() != server) continue;
      numbers[count] = static_cast<std::int64_t>(row);
      const auto known = old_of(c, c.touched[next], table.row);
      std::ranges::copy(known, row_of(old, count, table.row).begin());
      ++count;
    }
    const rg_buffer values = rg::sub(p.values, 0, count * table.row);
    co_await comm.rows_read(t, numbers_in(p, count), values, rg::role::worker);
    co_await comm.axpy(values, -1, rg::sub(own_[server], 0, values.count));
    if (!adds_) co_return count;
    co_await comm.scale(values, 1.0 / comm.workers());
    co_await comm.axpy(rg::sub(own_[server], 0, values.count), 1, values);
    std::size_t from = 0;
    for (std::size_t i = first; i < next; ++i) {
      if (c.rows[c.touched[i]] % comm.servers() != server) continue;
      std::ranges::copy(row_of(old, from++, table.row), old_of(c, c.touched[i], table.row).begin());
    }
    co_return count;
  }

  bool adds_;
  std::uint32_t to_servers_, to_workers_;
  std::vector<copy> copies_; // by table
  std::uint64_t period_ = 1;
  std::vector<chunk> chunks_;  // by server
  std::vector<rg_buffer> own_; // by server: old values of a chunk's rows, or their current values
  rg::task_group exchanging_;
};

// The server's side. Without sparse tables, only construct it.
class row_server {
public:
  // Call it in the strategy's constructor, on every rank; only a server allocates memory. `k` is the number of steps in
  // a period; the other arguments are those of row_worker.
  row_server(rg::comm& c, std::uint64_t k, bool adds, std::uint32_t to_servers, std::uint32_t to_workers)
      : comm(c), k_(k), share_(adds ? 1.0 : 1.0 / c.workers()), to_servers_(to_servers), to_workers_(to_workers),
        pushed_(c.tables()) {
    if (!comm.tables() || !comm.is_server()) return;
    for (std::uint32_t t = 0; t < comm.tables(); ++t) comm.own_rows(t, rg::role::server, comm.servers(), comm.server());
    for (std::uint32_t w = 0; w < comm.workers(); ++w) worker_states_.push_back({make_chunk(comm), {}, {}, 0});
    for (worker_state& state : worker_states_) state.sent_up_to.resize(comm.tables());
  }

  // Receives the periods of worker w, adds its differences and answers, until the worker has finished. Run one for each
  // worker, on a server, if the model has sparse tables. Records the staleness of each period: the periods that other
  // workers pushed since the last answer to w.
  rg::task<> attend(std::uint32_t w) {
    worker_state& from = worker_states_[w];
    for (std::uint64_t step = k_ - 1;; step += k_) { // the last step of a period
      for (;;) {
        const received r = co_await receive(comm, w, from.memory, to_servers_);
        if (r.kind == message_kind::goodbye) co_return forget(w);
        if (r.kind == message_kind::end) break;
        co_await comm.rows_write(r.table, r.numbers, share_, r.values, rg::role::server);
        const auto numbers = comm.elements<std::int64_t>(r.numbers);
        auto& pushed = pushed_[r.table].numbers;
        pushed.insert(pushed.end(), numbers.begin(), numbers.end());
      }
      comm.record_of_step("staleness", periods_ - from.seen, w, step);
      from.seen = ++periods_;
      co_await answer(w);
    }
  }

  rg::comm& comm;

private:
  struct worker_state {
    chunk memory;
    std::vector<std::int64_t> rows;        // rows of one table for an answer
    std::vector<std::uint64_t> sent_up_to; // by table: numbers of the list that were sent to it; or `finished`
    std::uint64_t seen;                    // value of periods_ at the last answer
  };
  struct list { // of a table: rows in the order in which they were pushed
    std::vector<std::int64_t> numbers;
    std::uint64_t first = 0; // index of numbers[0] in the whole list; numbers that all workers have are dropped
  };
  static constexpr std::uint64_t finished = std::numeric_limits<std::uint64_t>::max();

  // Sends worker w all rows that any worker has pushed since the last answer to w, then the end.
  rg::task<> answer(std::uint32_t w) {
    worker_state& to = worker_states_[w];
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const rg_table table = comm.table(t);
      const list& l = pushed_[t];
      to.rows.assign(l.numbers.begin() + static_cast<std::ptrdiff_t>(to.sent_up_to[t] - l.first), l.numbers.end());
      to.sent_up_to[t] = l.first + l.numbers.size();
      drop_what_all_have(t);
      std::sort(to.rows.begin(), to.rows.end());
      to.rows.erase(std::unique(to.rows.begin(), to.rows.end()), to.rows.end());
      for (std::uint64_t first = 0; first < to.rows.size();) {
        const std::uint64_t count = std::min(to.rows.size() - first, rows_at_once(table));
        const rg_buffer numbers = numbers_in(to.memory, count);
        std::copy_n(to.rows.begin() + static_cast<std::ptrdiff_t>(first), count,
                    comm.elements<std::int64_t>(numbers).begin());
        co_await comm.rows_read(t, numbers, rg::sub(to.memory.values, 0, count * table.row), rg::role::server);
        co_await send(comm, w, to.memory, message_kind::chunk, t, count, to_workers_);
        first += count;
      }
    }
    co_await send(comm, w, to.memory, message_kind::end, 0, 0, to_workers_);
  }
  // Worker w has finished: lists need not be kept for it any more.
  void forget(std::uint32_t w) {
    std::fill(worker_states_[w].sent_up_to.begin(), worker_states_[w].sent_up_to.end(), finished);
    for (std::uint32_t t = 0; t < comm.tables(); ++t) drop_what_all_have(t);
  }
  // Removes the row numbers from the front of table t's list that all workers have been sent, if they are at least half
  // of it.
  void drop_what_all_have(std::uint32_t t) {
    list& l = pushed_[t];
    std::uint64_t known = finished;
    for (const worker_state& c : worker_states_) known = std::min(known, c.sent_up_to[t]);
    const std::uint64_t end = l.first + l.numbers.size();
    known = std::min(known, end);
    if (2 * (known - l.first) < l.numbers.size()) return; // erasing moves the rest: not worth it for a few
    l.numbers.erase(l.numbers.begin(), l.numbers.begin() + static_cast<std::ptrdiff_t>(known - l.first));
    l.first = known;
  }

  std::uint64_t k_;
  double share_; // factor on a difference; 1 with "add", because the worker has divided it
  std::uint32_t to_servers_, to_workers_;
  std::vector<list> pushed_; // by table
  std::vector<worker_state> worker_states_;
  std::uint64_t periods_ = 0; // periods pushed so far, by all workers together
};

} // namespace geo

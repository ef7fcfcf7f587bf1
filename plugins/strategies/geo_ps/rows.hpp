// SPDX-License-Identifier: Apache-2.0
//
// Rows of sparse tables under GEO-SGD, as PaddlePaddle's communicator exchanges them. A worker keeps every row it has
// seen and trains on its own copy. At the end of a period it pushes, of each row that it touched, how far it has moved;
// a server (row r is on server r mod S) adds that, divided by the number of workers, and answers with the rows that
// anybody has pushed since it answered this worker last: so copies of what others touch are fresh, too.
//
// Both ways a period is any number of pieces of one table each, then an end. A piece is two messages: what it is, the
// table, how many rows and their numbers (64 bits each); and their values. Memory does not grow with the period but for
// the rows' numbers and, on a worker, where they began.
#pragma once

#include <regatta/strategy.hpp>

#include <bit>
#include <limits>
#include <utility>
#include <vector>

namespace geo {

enum class word : std::int64_t { piece = 1, end = 2, goodbye = 3 };
constexpr std::uint64_t header = 3; // word, table, count

// Memory for one piece.
struct piece {
  piece(rg::comm& c, std::uint64_t rows, std::uint64_t elements)
      : message(c.alloc_on_host(header + rows, RG_I64)), values(c.alloc_on_host(elements)) {}
  rg_buffer message, values;
};
// Rows of table t in a piece: as many as a mebibyte holds.
inline std::uint64_t rows_at_once(const rg_table& t) {
  return std::clamp<std::uint64_t>((1 << 18) / t.row, 1, t.rows);
}
inline piece make_piece(rg::comm& c) {
  std::uint64_t rows = 0, elements = 0;
  for (std::uint32_t t = 0; t < c.tables(); ++t) {
    const rg_table table = c.table(t);
    rows = std::max(rows, rows_at_once(table));
    elements = std::max(elements, rows_at_once(table) * table.row);
  }
  return {c, rows, elements};
}
inline rg_buffer numbers_in(const piece& p, std::uint64_t count) {
  return rg::sub(p.message, header, count);
}

// Sends `p`, or the end or goodbye, which are a header alone.
inline rg::task<> send(rg::comm& comm, std::uint32_t peer, const piece& p, word what, std::uint32_t table,
                       std::uint64_t count, std::uint32_t lane) {
  const auto words = comm.elements<std::int64_t>(p.message);
  words[0] = static_cast<std::int64_t>(what);
  words[1] = table;
  words[2] = static_cast<std::int64_t>(count);
  co_await comm.send(peer, rg::sub(p.message, 0, header + count), lane);
  if (count) co_await comm.send(peer, rg::sub(p.values, 0, count * comm.table(table).row), lane);
}
struct received {
  word what;
  std::uint32_t table;
  rg_buffer numbers, values;
};
inline rg::task<received> receive(rg::comm& comm, std::uint32_t peer, const piece& p, std::uint32_t lane) {
  co_await comm.recv(peer, p.message, lane);
  const auto words = comm.elements<std::int64_t>(p.message);
  const auto count = static_cast<std::uint64_t>(words[2]);
  received r{static_cast<word>(words[0]), static_cast<std::uint32_t>(words[1]), numbers_in(p, count), {}};
  if (count) r.values = rg::sub(p.values, 0, count * comm.table(r.table).row);
  if (count) co_await comm.recv(peer, r.values, lane);
  co_return r;
}

// Row numbers, each once: a hash table with linear probing, whose memory is kept from period to period.
class row_set {
public:
  // False: it is in there already.
  bool insert(std::uint64_t row) {
    if (2 * (count_ + 1) > places_.size()) grow();
    const bool added = put(row);
    count_ += added;
    return added;
  }
  void clear() {
    std::fill(places_.begin(), places_.end(), none);
    count_ = 0;
  }

private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  bool put(std::uint64_t row) {
    const int bits = std::countr_zero(places_.size());
    const std::size_t mask = places_.size() - 1;
    // Multiplicative hashing: Knuth, The Art of Computer Programming 3, section 6.4.
    for (std::size_t at = (row * 0x9E3779B97F4A7C15) >> (64 - bits);; at = (at + 1) & mask) {
      if (places_[at] == row) return false;
      if (places_[at] != none) continue;
      places_[at] = row;
      return true;
    }
  }
  void grow() {
    const auto old = std::exchange(places_, std::vector(std::max<std::size_t>(1024, 2 * places_.size()), none));
    for (const std::uint64_t row : old)
      if (row != none) put(row);
  }

  std::vector<std::uint64_t> places_; // a power of two of them
  std::size_t count_ = 0;
};

class row_worker {
public:
  row_worker(rg::comm& c, std::uint32_t to_servers, std::uint32_t to_workers)
      : comm(c), to_servers_(to_servers), to_workers_(to_workers), moved_(c.tables()) {
    if (!comm.tables() || !comm.is_worker()) return;
    for (std::uint32_t t = 0; t < comm.tables(); ++t) comm.own_rows(t, rg::role::worker);
    for (std::uint32_t s = 0; s < comm.servers(); ++s) {
      pieces_.push_back(make_piece(comm));
      own_.push_back(make_piece(comm).values);
    }
  }

  // Brings rows from the own copy.
  rg::task<> read(rg::step_rows rows) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const std::uint64_t n = rows[t].size();
      co_await comm.rows_read(t, comm.row_numbers(t, 0, n), comm.row_weights(t, 0, n), rg::role::worker);
    }
  }
  // Likewise for a step, which will change them.
  rg::task<> begin_step(rg::step_rows rows) {
    co_await read(rows);
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      touched& m = moved_[t];
      m.now = rows[t].size();
      const std::uint64_t row = comm.table(t).row;
      const auto weights = comm.elements<float>(comm.row_weights(t, 0, m.now));
      for (std::uint64_t i = 0; i < m.now; ++i)
        if (m.rows.insert(rows[t][i])) {
          m.numbers.push_back(rows[t][i]);
          m.began.insert(m.began.end(), weights.begin() + static_cast<std::ptrdiff_t>(i * row),
                         weights.begin() + static_cast<std::ptrdiff_t>((i + 1) * row));
        }
    }
  }
  // The worker's own update, by the mean over its own batch.
  rg::task<> update(std::uint64_t step) {
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const rg_buffer gradients = comm.row_gradients(t, 0, moved_[t].now);
      co_await comm.scale(gradients, comm.workers());
      co_await comm.rows_apply(t, comm.row_numbers(t, 0, moved_[t].now), gradients, step, rg::role::worker);
    }
  }
  // A period's end, with all servers side by side.
  rg::task<> meet() {
    for (std::uint32_t s = 0; s < comm.servers() && comm.tables(); ++s) meeting_.spawn(meet_one(*this, s));
    co_await meeting_.join();
    for (touched& m : moved_) {
      m.rows.clear();
      m.numbers.clear();
      m.began.clear();
    }
  }
  rg::task<> goodbye() {
    for (std::uint32_t s = 0; s < comm.servers() && comm.tables(); ++s)
      co_await send(comm, comm.server_rank(s), pieces_[s], word::goodbye, 0, 0, to_servers_);
  }

  rg::comm& comm;

private:
  struct touched { // of one table, in this period
    row_set rows;
    std::vector<std::uint64_t> numbers; // the same, in the order of touching
    std::vector<float> began;           // what they were then
    std::uint64_t now = 0;              // rows of this step
  };

  static rg::task<> meet_one(row_worker& self, std::uint32_t server) {
    rg::comm& comm = self.comm;
    const std::uint32_t peer = comm.server_rank(server);
    const piece& p = self.pieces_[server];
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const std::vector<std::uint64_t>& numbers = self.moved_[t].numbers;
      for (std::size_t next = 0; next < numbers.size();) {
        const std::uint64_t count = co_await fill(self, t, server, next);
        if (count) co_await send(comm, peer, p, word::piece, t, count, self.to_servers_);
      }
    }
    co_await send(comm, peer, p, word::end, 0, 0, self.to_servers_);
    for (;;) {
      const received r = co_await receive(comm, peer, p, self.to_workers_);
      if (r.what == word::end) co_return;
      const rg_buffer own = rg::sub(self.own_[server], 0, r.values.count);
      co_await comm.rows_read(r.table, r.numbers, own, rg::role::worker);
      co_await comm.axpy(r.values, -1, own);
      co_await comm.rows_write(r.table, r.numbers, 1, r.values, rg::role::worker);
    }
  }
  // The next rows of the server's, from `next` on, and their differences. Gives how many.
  static rg::task<std::uint64_t> fill(row_worker& self, std::uint32_t t, std::uint32_t server, std::size_t& next) {
    rg::comm& comm = self.comm;
    const touched& m = self.moved_[t];
    const rg_table table = comm.table(t);
    const piece& p = self.pieces_[server];
    const std::uint64_t most = rows_at_once(table);
    const auto began = comm.elements<float>(rg::sub(self.own_[server], 0, most * table.row));
    const auto numbers = comm.elements<std::int64_t>(numbers_in(p, most));
    std::uint64_t count = 0;
    for (; next < m.numbers.size() && count < most; ++next) {
      if (m.numbers[next] % comm.servers() != server) continue;
      numbers[count] = static_cast<std::int64_t>(m.numbers[next]);
      std::copy_n(m.began.begin() + static_cast<std::ptrdiff_t>(next * table.row), table.row,
                  began.begin() + static_cast<std::ptrdiff_t>(count * table.row));
      ++count;
    }
    const rg_buffer values = rg::sub(p.values, 0, count * table.row);
    co_await comm.rows_read(t, numbers_in(p, count), values, rg::role::worker);
    co_await comm.axpy(values, -1, rg::sub(self.own_[server], 0, values.count));
    co_return count;
  }

  std::uint32_t to_servers_, to_workers_;
  std::vector<touched> moved_; // by table
  std::vector<piece> pieces_;  // by server
  std::vector<rg_buffer> own_; // by server: a piece's values as they were, or as they are here
  rg::task_group meeting_;
};

class row_server {
public:
  // `k`: steps of a period.
  row_server(rg::comm& c, std::uint64_t k, std::uint32_t to_servers, std::uint32_t to_workers)
      : comm(c), k_(k), to_servers_(to_servers), to_workers_(to_workers), pushed_(c.tables()) {
    if (!comm.tables() || !comm.is_server()) return;
    for (std::uint32_t t = 0; t < comm.tables(); ++t)
      comm.own_rows(t, rg::role::server, comm.servers(), static_cast<std::uint64_t>(comm.cluster().server));
    for (std::uint32_t w = 0; w < comm.workers(); ++w) customers_.push_back({make_piece(comm), {}, {}, 0});
    for (customer& c2 : customers_) c2.told.resize(comm.tables());
  }

  // Worker w's periods, until it says goodbye.
  static rg::task<> attend(row_server& self, std::uint32_t w) {
    rg::comm& comm = self.comm;
    customer& from = self.customers_[w];
    for (std::uint64_t step = self.k_ - 1;; step += self.k_) { // the last of a period
      for (;;) {
        const received r = co_await receive(comm, w, from.memory, self.to_servers_);
        if (r.what == word::goodbye) co_return self.forget(w);
        if (r.what == word::end) break;
        co_await comm.rows_write(r.table, r.numbers, 1.0 / comm.workers(), r.values, rg::role::server);
        const auto numbers = comm.elements<std::int64_t>(r.numbers);
        auto& list = self.pushed_[r.table].numbers;
        list.insert(list.end(), numbers.begin(), numbers.end());
      }
      comm.record_of_step("staleness", static_cast<std::int64_t>(self.periods_ - from.seen), w, step);
      from.seen = ++self.periods_;
      co_await answer(self, w);
    }
  }

  rg::comm& comm;

private:
  struct customer {
    piece memory;
    std::vector<std::int64_t> rows;  // of one table, to be told
    std::vector<std::uint64_t> told; // by table: how much of the list it was told
    std::uint64_t seen;              // periods of all when it was answered last
  };
  struct list { // of a table: rows in the order in which they were pushed
    std::vector<std::int64_t> numbers;
    std::uint64_t first = 0; // place of numbers[0]: what everybody was told is forgotten
  };
  static constexpr std::uint64_t gone = std::numeric_limits<std::uint64_t>::max();

  static rg::task<> answer(row_server& self, std::uint32_t w) {
    rg::comm& comm = self.comm;
    customer& to = self.customers_[w];
    for (std::uint32_t t = 0; t < comm.tables(); ++t) {
      const rg_table table = comm.table(t);
      const list& l = self.pushed_[t];
      to.rows.assign(l.numbers.begin() + static_cast<std::ptrdiff_t>(to.told[t] - l.first), l.numbers.end());
      to.told[t] = l.first + l.numbers.size();
      self.forget_what_all_know(t);
      std::sort(to.rows.begin(), to.rows.end());
      to.rows.erase(std::unique(to.rows.begin(), to.rows.end()), to.rows.end());
      for (std::uint64_t first = 0; first < to.rows.size();) {
        const std::uint64_t count = std::min(to.rows.size() - first, rows_at_once(table));
        const rg_buffer numbers = numbers_in(to.memory, count);
        std::copy_n(to.rows.begin() + static_cast<std::ptrdiff_t>(first), count,
                    comm.elements<std::int64_t>(numbers).begin());
        co_await comm.rows_read(t, numbers, rg::sub(to.memory.values, 0, count * table.row), rg::role::server);
        co_await send(comm, w, to.memory, word::piece, t, count, self.to_workers_);
        first += count;
      }
    }
    co_await send(comm, w, to.memory, word::end, 0, 0, self.to_workers_);
  }
  void forget(std::uint32_t w) {
    std::fill(customers_[w].told.begin(), customers_[w].told.end(), gone);
    for (std::uint32_t t = 0; t < comm.tables(); ++t) forget_what_all_know(t);
  }
  void forget_what_all_know(std::uint32_t t) {
    list& l = pushed_[t];
    std::uint64_t known = gone;
    for (const customer& c : customers_) known = std::min(known, c.told[t]);
    const std::uint64_t end = l.first + l.numbers.size();
    known = std::min(known, end);
    if (2 * (known - l.first) < l.numbers.size()) return; // what stays is moved: not for a few
    l.numbers.erase(l.numbers.begin(), l.numbers.begin() + static_cast<std::ptrdiff_t>(known - l.first));
    l.first = known;
  }

  std::uint64_t k_;
  std::uint32_t to_servers_, to_workers_;
  std::vector<list> pushed_; // by table
  std::vector<customer> customers_;
  std::uint64_t periods_ = 0; // that were pushed by all
};

} // namespace geo

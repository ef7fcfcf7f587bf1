// SPDX-License-Identifier: Apache-2.0
//
// Collectives over the example transport: a correct one, and others with one defect each.
#include "unix.hpp"

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include <regatta/ext/collectives.h>

namespace {

enum class kind { all_reduce, reduce_scatter, all_gather, broadcast };

// Every member sends its whole buffer to every other one on a separate lane, and uses its part of each received buffer.
struct sends_all : unix_transport {
  using unix_transport::unix_transport;
  virtual ~sends_all() = default;

  rg_blob listen(const rg_world& world) {
    rank_ = world.rank;
    lane_ = world.lanes;
    wider_ = world;
    ++wider_.lanes;
    return unix_transport::listen(wider_);
  }
  std::uint32_t split(std::span<const std::uint32_t> members) {
    groups_.emplace_back(members.begin(), members.end());
    return static_cast<std::uint32_t>(groups_.size() - 1);
  }
  rg_status all_reduce(const rg_collective& c) { return begin(kind::all_reduce, c); }
  rg_status reduce_scatter(const rg_collective& c) { return begin(kind::reduce_scatter, c); }
  rg_status all_gather(const rg_collective& c) { return begin(kind::all_gather, c); }
  rg_status broadcast(const rg_collective& c) { return begin(kind::broadcast, c); }

  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (const std::uint32_t count = hand_out(out)) return count;
    std::array<rg_completion, 64> got;
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, got);
    for (const rg_completion& c : std::span(got).first(count)) {
      const auto at = parts_.find(c.cookie);
      if (at == parts_.end())
        done_.push_back(c);
      else
        ended(calls_.at(at->second), c.status);
    }
    return hand_out(out);
  }

protected:
  struct call {
    kind what;
    rg_collective of;
    std::vector<std::uint32_t> members;
    std::vector<std::vector<std::byte>> buffers; // by member: what each brought; they outlive the messages
    std::size_t open = 0;                        // messages on their way
    bool over = false;

    std::uint64_t element() const { return rg::size_of(of.buffer.type); }
    std::uint64_t bytes() const { return of.buffer.count * element(); }
    std::size_t place(std::uint32_t rank) const {
      return static_cast<std::size_t>(std::find(members.begin(), members.end(), rank) - members.begin());
    }
  };
  struct part {
    std::uint64_t first, end;
  };

  // The defects override these.
  virtual rg_status refused(const rg_collective&) {
    throw rg::error(RG_E_OPERATION, "unix: a collective of nothing, or of nobody");
  }
  virtual part share(const call& c, std::uint64_t place) const {
    const std::uint64_t count = c.of.buffer.count, lines = (count + 15) / 16, n = c.members.size();
    return {std::min(count, lines * place / n * 16), std::min(count, lines * (place + 1) / n * 16)};
  }
  virtual std::size_t root(const call& c) const { return c.of.root; }
  virtual std::size_t own_place(const call& c) const { return c.place(rank_); }
  virtual rg_status status_of_failure(rg_status s) const { return s; }
  virtual bool is_forgotten(std::size_t) const { return false; }
  virtual void finish(call& c) {
    switch (c.what) {
    case kind::all_reduce: return sum(c, {0, c.of.buffer.count});
    case kind::reduce_scatter: return sum(c, share(c, own_place(c)));
    case kind::all_gather:
      for (std::size_t m = 0; m < c.members.size(); ++m) copy(c, m, share(c, m));
      return;
    case kind::broadcast: return copy(c, root(c), {0, c.of.buffer.count});
    }
  }
  static void sum(call& c, part p) {
    for (std::uint64_t i = p.first; i < p.end; ++i) {
      float total = 0;
      for (std::size_t m = 0; m < c.members.size(); ++m) {
        float x;
        std::memcpy(&x, c.buffers[m].data() + i * sizeof x, sizeof x);
        total = m ? total + x : x;
      }
      std::memcpy(static_cast<std::byte*>(c.of.address) + i * sizeof total, &total, sizeof total);
    }
  }
  static void copy(call& c, std::size_t from, part p) {
    if (p.first < p.end)
      std::memcpy(static_cast<std::byte*>(c.of.address) + p.first * c.element(),
                  c.buffers[from].data() + p.first * c.element(), (p.end - p.first) * c.element());
  }
  std::size_t under_way() const {
    return static_cast<std::size_t>(
        std::count_if(calls_.begin(), calls_.end(), [](const auto& c) { return !c.second.over; }));
  }

  std::deque<rg_completion> done_; // to be handed out

private:
  rg_status begin(kind what, const rg_collective& of) {
    const bool sums = what == kind::all_reduce || what == kind::reduce_scatter;
    if (of.group >= groups_.size() || (what == kind::broadcast && of.root >= groups_[of.group].size()) ||
        (sums && of.buffer.type != RG_F32) || (!of.address && of.buffer.count))
      return refused(of);
    const std::uint64_t number = ++last_call_;
    call& c = calls_[number];
    c.what = what;
    c.of = of;
    c.members = groups_[of.group];
    c.buffers.resize(c.members.size(), std::vector<std::byte>(c.bytes()));
    const std::size_t self = c.place(rank_);
    if (c.bytes()) std::memcpy(c.buffers[self].data(), of.address, c.bytes());
    try {
      for (std::size_t m = 0; m < c.members.size(); ++m) {
        if (m == self) continue;
        for (const bool sends : {false, true}) {
          rg_transfer t = rg::make_versioned<rg_transfer>();
          t.peer = c.members[m];
          t.lane = lane_;
          t.buffer = {0, RG_U8, 0, c.bytes()};
          t.bytes = c.bytes();
          t.address = c.buffers[sends ? self : m].data();
          t.cookie = inner | ++last_part_;
          parts_[t.cookie] = number;
          ++c.open;
          sends ? unix_transport::send(t) : unix_transport::recv(t);
        }
      }
    } catch (const rg::error& e) {
      c.over = true;
      throw rg::error(status_of_failure(e.status()), e.what());
    }
    if (c.open == 0) ended(c, RG_OK);
    return RG_OK;
  }
  // Only the first failed message ends the collective: the other messages still use its memory.
  void ended(call& c, rg_status status) {
    if (c.open) --c.open;
    if (c.over || (status == RG_OK && c.open)) return;
    if (status == RG_OK && !is_forgotten(under_way())) finish(c);
    c.over = true;
    done_.push_back(
        {.cookie = c.of.cookie, .status = status == RG_OK ? status : status_of_failure(status), .bytes = c.bytes()});
  }
  std::uint32_t hand_out(std::span<rg_completion> out) {
    std::uint32_t count = 0;
    for (; count < out.size() && !done_.empty(); done_.pop_front()) out[count++] = done_.front();
    return count;
  }

  static constexpr std::uint64_t inner = std::uint64_t{1} << 63;
  rg_world wider_{};
  std::uint32_t rank_ = 0, lane_ = 0;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::uint64_t last_call_ = 0, last_part_ = 0;
  std::map<std::uint64_t, call> calls_;          // by number
  std::map<std::uint64_t, std::uint64_t> parts_; // by cookie of a message: its call
};

// Defect: the shards of a reduce-scatter do not begin at multiples of 16 elements.
struct scatters_evenly : sends_all {
  using sends_all::sends_all;
  part share(const call& c, std::uint64_t place) const override {
    if (c.what != kind::reduce_scatter) return sends_all::share(c, place);
    const std::uint64_t count = c.of.buffer.count, n = c.members.size();
    return {count * place / n, count * (place + 1) / n};
  }
};

// Defect: an all-gather omits the elements behind the last multiple of 16.
struct gathers_lines : sends_all {
  using sends_all::sends_all;
  part share(const call& c, std::uint64_t place) const override {
    part p = sends_all::share(c, place);
    if (c.what == kind::all_gather) p.end -= (p.end - p.first) % 16;
    return p;
  }
};

struct broadcasts_from_first : sends_all {
  using sends_all::sends_all;
  std::size_t root(const call&) const override { return 0; }
};

// Defect: uses a member's rank as its index in the group, which is right only in the group of all ranks.
struct places_by_rank : sends_all {
  using sends_all::sends_all;
  rg_blob listen(const rg_world& world) {
    rank = world.rank;
    return sends_all::listen(world);
  }
  std::size_t own_place(const call& c) const override { return std::min<std::size_t>(rank, c.members.size() - 1); }
  std::uint32_t rank = 0;
};

// Defect: with more than 32 pending collectives, some complete without being done.
struct forgets_some : sends_all {
  using sends_all::sends_all;
  bool is_forgotten(std::size_t under_way) const override { return under_way > 32; }
};

struct forgets_all : sends_all {
  using sends_all::sends_all;
  bool is_forgotten(std::size_t) const override { return true; }
};

struct blames_the_collective : sends_all {
  using sends_all::sends_all;
  rg_status status_of_failure(rg_status) const override { return RG_E_OPERATION; }
};

struct takes_any_collective : sends_all {
  using sends_all::sends_all;
  rg_status refused(const rg_collective& of) override {
    done_.push_back({.cookie = of.cookie, .status = RG_OK, .bytes = 0});
    return RG_OK;
  }
};

// Defect: writes a byte behind the buffer.
struct overwrites_beside : sends_all {
  using sends_all::sends_all;
  void finish(call& c) override {
    sends_all::finish(c);
    if (c.of.buffer.count == 1000) static_cast<std::byte*>(c.of.address)[c.bytes()] ^= std::byte{1};
  }
};

} // namespace

RG_PLUGIN("broken_collectives", "1.0", rg::transport<sends_all>("sends_all", "sound, and slow"),
          rg::transport<scatters_evenly>("scatters_evenly", "broken: shares of its own cut"),
          rg::transport<gathers_lines>("gathers_lines", "broken: gathers whole lines only"),
          rg::transport<broadcasts_from_first>("broadcasts_from_first", "broken: one root for all"),
          rg::transport<places_by_rank>("places_by_rank", "broken: places are ranks"),
          rg::transport<forgets_some>("forgets_some", "broken: not too many at a time"),
          rg::transport<forgets_all>("forgets_all", "broken: does nothing"),
          rg::transport<blames_the_collective>("blames_the_collective", "broken: a death is no error of its own"),
          rg::transport<takes_any_collective>("takes_any_collective", "broken: refuses nothing"),
          rg::transport<overwrites_beside>("overwrites_beside", "broken: writes behind the buffer"))

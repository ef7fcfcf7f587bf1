// SPDX-License-Identifier: Apache-2.0
//
// Collectives over the example transport: correct ones, as base of the broken ones.
#pragma once

#include "unix.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include <regatta/collectives.hpp>
#include <regatta/ext/collectives.h>
#include <regatta/half.hpp>

namespace {

// Every member sends its elements to the others on a separate lane, more than they need, and uses its part of them.
struct sends_all : unix_transport {
  sends_all(const rg_host* host, const rg::parameters_t<unix_transport>& p)
      : unix_transport(host, p), host_of_exchange_(host) {}
  virtual ~sends_all() = default;

  rg_blob listen(const rg_world& world) {
    rank_ = world.rank;
    lane_ = world.lanes;
    wider_ = world;
    ++wider_.lanes;
    return unix_transport::listen(wider_);
  }
  // Every member tells the others its rank.
  std::uint32_t split(std::span<const std::uint32_t> members) {
    const std::byte mine{static_cast<unsigned char>(rank_)};
    const auto ranks = rg::exchange(host_of_exchange_, members, {&mine, 1});
    for (std::size_t k = 0; k < members.size(); ++k)
      if (ranks[k] != std::vector{std::byte{static_cast<unsigned char>(members[k])}})
        throw rg::error(RG_E_OPERATION, "unix: the exchange brought the bytes of another rank");
    groups_.emplace_back(members.begin(), members.end());
    return static_cast<std::uint32_t>(groups_.size() - 1);
  }
  bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept {
    return wire == 0 && (!rg::reduces(kind) || (type == RG_F32 && reduction == RG_SUM));
  }
  rg_status begin(const rg_collective& c) { return start(c); }

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
    rg_collective of;
    std::vector<std::uint32_t> members;
    std::vector<std::vector<std::byte>> buffers; // by member: what it sent to this rank; they outlive the messages
    std::vector<std::vector<std::byte>> sent;    // by member: what this rank sends to it
    std::size_t open = 0;                        // messages on their way
    bool over = false;

    bool cuts_source() const { return of.kind == RG_OP_REDUCE_SCATTER || of.kind == RG_OP_SCATTER; }
    bool is_private() const { return of.kind >= RG_OP_GATHER; } // members get different bytes
    const rg_buffer& whole() const { return cuts_source() ? of.source : of.target; }
    std::uint64_t element() const { return rg::size_of(of.source.type ? of.source.type : of.target.type); }
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
    const rg::chunk own = rg::chunk_of(c.whole().count, c.of.counts, place, c.members.size());
    return {own.first, own.end()};
  }
  virtual std::size_t root(const call& c) const { return c.of.root; }
  virtual std::size_t own_place(const call& c) const { return c.place(rank_); }
  virtual rg_status status_of_failure(rg_status s) const { return s; }
  virtual bool is_forgotten(std::size_t) const { return false; }
  virtual void finish(call& c) {
    const std::size_t n = c.members.size();
    switch (c.of.kind) {
    case RG_OP_REDUCE:
      if (c.of.target_address) sum(c, {0, c.of.source.count});
      return;
    case RG_OP_ALL_REDUCE: return sum(c, {0, c.of.source.count});
    case RG_OP_REDUCE_SCATTER: return sum(c, share(c, own_place(c)));
    case RG_OP_ALL_GATHER:
      for (std::size_t m = 0; m < n; ++m) copy(c, m, share(c, m));
      return;
    case RG_OP_BROADCAST: return copy(c, root(c), {0, c.of.target.count});
    case RG_OP_BARRIER: return;
    default: // what the others sent, one behind the other
      std::uint64_t at = 0;
      for (const auto& b : c.buffers) {
        if (!b.empty()) std::memcpy(static_cast<std::byte*>(c.of.target_address) + at, b.data(), b.size());
        at += b.size();
      }
    }
  }
  static void sum(call& c, part p) {
    p.end = std::min(p.end, p.first + c.of.target.count);
    for (std::uint64_t i = p.first; i < p.end; ++i) {
      float total = 0;
      for (std::size_t m = 0; m < c.members.size(); ++m) {
        float x;
        std::memcpy(&x, c.buffers[m].data() + i * sizeof x, sizeof x);
        total = m ? total + x : x;
      }
      std::memcpy(static_cast<std::byte*>(c.of.target_address) + (i - p.first) * sizeof total, &total, sizeof total);
    }
  }
  static void copy(call& c, std::size_t from, part p) {
    if (p.first < p.end)
      std::memcpy(static_cast<std::byte*>(c.of.target_address) + p.first * c.element(),
                  c.buffers[from].data() + p.first * c.element(), (p.end - p.first) * c.element());
  }
  std::size_t under_way() const {
    return static_cast<std::size_t>(
        std::count_if(calls_.begin(), calls_.end(), [](const auto& c) { return !c.second.over; }));
  }

  std::deque<rg_completion> done_; // to be handed out
  std::vector<std::vector<std::uint32_t>> groups_;

private:
  rg_status start(const rg_collective& of) {
    const bool bytes = (of.source_address || !of.source.count) && (of.target_address || !of.target.count);
    if (of.group >= groups_.size() || (rg::has_root(of.kind) && of.root >= groups_[of.group].size()) || !bytes)
      return refused(of);
    const std::uint64_t number = ++last_call_;
    call& c = calls_[number];
    c.of = of;
    c.members = groups_[of.group];
    c.buffers.resize(c.members.size());
    c.sent.resize(c.members.size());
    const std::size_t self = c.place(rank_);
    for (std::size_t m = 0; m < c.members.size(); ++m) prepare(c, m, self);
    if (c.sent[self].size() == c.buffers[self].size()) c.buffers[self] = c.sent[self];
    try {
      for (std::size_t m = 0; m < c.members.size(); ++m) {
        if (m == self) continue;
        for (const bool sends : {false, true}) {
          std::vector<std::byte>& buffer = sends ? c.sent[m] : c.buffers[m];
          rg_transfer t = rg::make_versioned<rg_transfer>();
          t.peer = c.members[m];
          t.lane = lane_;
          t.buffer = {0, RG_U8, 0, buffer.size()};
          t.bytes = buffer.size();
          t.address = buffer.data();
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
  // Makes the message to member m and the room for that from it. Members that have nothing for each other exchange
  // empty messages.
  void prepare(call& c, std::size_t m, std::size_t self) const {
    const rg_collective& of = c.of;
    const std::uint64_t n = c.members.size(), size = c.element();
    const auto* const source = static_cast<const std::byte*>(of.source_address ? of.source_address : of.target_address);
    const auto bytes = [&](const rg_buffer& b, const std::uint64_t* counts, std::size_t k) {
      const rg::chunk own =
          of.kind == RG_OP_ALL_TO_ALL && !counts ? rg::equal_chunk(b.count, k, n) : rg::chunk_of(b.count, counts, k, n);
      return rg::chunk{own.first * size, own.count * size};
    };
    const auto take = [&](rg::chunk of_source) {
      c.sent[m].assign(source + of_source.first, source + of_source.end());
    };
    switch (of.kind) {
    case RG_OP_BARRIER: return;
    case RG_OP_GATHER:
      if (m == of.root) take({0, of.source.count * size});
      if (self == of.root) c.buffers[m].resize(bytes(of.target, of.counts, m).count);
      return;
    case RG_OP_SCATTER:
      if (self == of.root) take(bytes(of.source, of.counts, m));
      if (m == of.root) c.buffers[m].resize(of.target.count * size);
      return;
    case RG_OP_ALL_TO_ALL:
      take(bytes(of.source, of.counts, m));
      c.buffers[m].resize(bytes(of.target, of.target_counts, m).count);
      return;
    case RG_OP_ALL_GATHER: {
      c.sent[m].resize(of.target.count * size);
      const std::uint64_t at = bytes(of.target, of.counts, self).first;
      std::copy_n(source, of.source.count * size, c.sent[m].begin() + static_cast<std::ptrdiff_t>(at));
      break;
    }
    default: take({0, std::max(of.source.count, of.target.count) * size});
    }
    c.buffers[m].resize(c.sent[m].size());
  }
  // Only the first failed message ends the collective: the other messages still use its memory.
  void ended(call& c, rg_status status) {
    if (c.open) --c.open;
    if (c.over || (status == RG_OK && c.open)) return;
    if (status == RG_OK && !is_forgotten(under_way())) finish(c);
    c.over = true;
    done_.push_back(
        {.cookie = c.of.cookie, .status = status == RG_OK ? status : status_of_failure(status), .bytes = 0});
  }
  std::uint32_t hand_out(std::span<rg_completion> out) {
    std::uint32_t count = 0;
    for (; count < out.size() && !done_.empty(); done_.pop_front()) out[count++] = done_.front();
    return count;
  }

  const rg_host* host_of_exchange_;
  static constexpr std::uint64_t inner = std::uint64_t{1} << 63;
  rg_world wider_{};
  std::uint32_t rank_ = 0, lane_ = 0;
  std::uint64_t last_call_ = 0, last_part_ = 0;
  std::map<std::uint64_t, call> calls_;          // by number
  std::map<std::uint64_t, std::uint64_t> parts_; // by cookie of a message: its call
};

// All-reduces with wire type bf16: every member rounds its elements and sends them to the others, which add them in
// fp32.
struct sends_rounded : sends_all {
  using sends_all::sends_all;
  bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept {
    if (!wire) return sends_all::offers(kind, reduction, type, 0);
    return wire == RG_BF16 && kind == RG_OP_ALL_REDUCE && sends_all::offers(kind, reduction, type, 0);
  }
  rg_status begin(const rg_collective& c) {
    if (!c.wire || c.group >= groups_.size() || (c.source.count && !c.source_address)) return sends_all::begin(c);
    const std::size_t n = groups_[c.group].size();
    rounded_call& r = rounded_[c.cookie];
    r.of = c;
    r.members = n;
    for (std::size_t m = 0; m < n; ++m) // a copy for each member
      for (std::size_t i = 0; i < c.source.count; ++i)
        r.mine.push_back(round(static_cast<const float*>(c.source_address)[i]));
    r.all.resize(r.mine.size());
    rg_collective moved = c;
    moved.kind = RG_OP_ALL_TO_ALL;
    moved.reduction = moved.wire = 0;
    moved.source = moved.target = {c.source.region, RG_BF16, 0, r.mine.size()};
    moved.source_address = r.mine.data();
    moved.target_address = r.all.data();
    return sends_all::begin(moved);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = sends_all::poll(timeout_ns, spin_ns, out);
    for (const rg_completion& c : out.first(count))
      if (const auto at = rounded_.find(c.cookie); at != rounded_.end()) {
        if (c.status == RG_OK) add_up(at->second);
        rounded_.erase(at);
      }
    return count;
  }

protected:
  struct rounded_call {
    rg_collective of;
    std::size_t members;
    std::vector<std::uint16_t> mine, all;
  };
  virtual std::uint16_t round(float x) const { return rg::to_bf16(x); }
  // Element i of member m, as this member adds it.
  virtual float summand(const rounded_call& r, std::size_t m, std::size_t i) const {
    return rg::from_bf16(r.all[m * r.of.source.count + i]);
  }

private:
  void add_up(const rounded_call& r) {
    auto* const target = static_cast<float*>(r.of.target_address);
    for (std::size_t i = 0; i < r.of.source.count; ++i) {
      float sum = summand(r, 0, i);
      for (std::size_t m = 1; m < r.members; ++m) sum += summand(r, m, i);
      target[i] = sum;
    }
  }

  std::map<std::uint64_t, rounded_call> rounded_; // by cookie
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Transports with a defect in an optional part: receives that add, conversion, regions, collectives.
#include "unix.hpp"

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include <regatta/ext/collectives.h>

namespace {

// Defect: adds in order of arrival, not of posting.
struct adds_on_arrival : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.flags |= RG_CAP_ADD | RG_CAP_ORDERED_RECEIVES;
    return c;
  }
  rg_status recv(const rg_transfer& t) {
    if (!(t.flags & RG_TRANSFER_ADD)) return unix_transport::recv(t);
    auto& [target, came] = adding_[t.cookie];
    target = static_cast<std::byte*>(t.address);
    came.resize(t.bytes);
    rg_transfer aside = t;
    aside.address = came.data();
    return unix_transport::recv(aside);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (const rg_completion& c : out.first(count)) {
      const auto at = adding_.find(c.cookie);
      if (at == adding_.end()) continue;
      const auto& [target, came] = at->second;
      for (std::uint64_t i = 0; i + sizeof(float) <= c.bytes; i += sizeof(float)) {
        float sum, term;
        std::memcpy(&sum, target + i, sizeof sum);
        std::memcpy(&term, came.data() + i, sizeof term);
        sum += term;
        std::memcpy(target + i, &sum, sizeof sum);
      }
      adding_.erase(at);
    }
    return count;
  }
  std::map<std::uint64_t, std::pair<std::byte*, std::vector<std::byte>>> adding_; // by cookie
};

// Defect: does not add the floats behind the last multiple of 16.
struct adds_in_sixteens : adds_on_arrival {
  using adds_on_arrival::adds_on_arrival;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::map<std::byte*, std::vector<std::byte>> kept;
    for (const auto& [cookie, sum] : adding_) {
      std::byte* const end = sum.first + sum.second.size();
      const std::size_t rest = sum.second.size() % 64;
      kept[end - rest].assign(end - rest, end);
    }
    const std::uint32_t count = adds_on_arrival::poll(timeout_ns, spin_ns, out);
    for (const auto& [at, bytes] : kept) std::copy(bytes.begin(), bytes.end(), at);
    return count;
  }
};

// Defect: a receive that adds a short message completes with the length of the receive.
struct overstates_sums : adds_on_arrival {
  using adds_on_arrival::adds_on_arrival;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::map<std::uint64_t, std::uint64_t> room;
    for (const auto& [cookie, sum] : adding_) room[cookie] = sum.second.size();
    const std::uint32_t count = adds_on_arrival::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count))
      if (const auto at = room.find(c.cookie); at != room.end()) c.bytes = at->second;
    return count;
  }
};

// Defect: copies are applied after later receives that add.
struct copies_last : adds_on_arrival {
  using adds_on_arrival::adds_on_arrival;
  rg_status recv(const rg_transfer& t) {
    if (t.flags & RG_TRANSFER_ADD) return adds_on_arrival::recv(t);
    copy& c = copies_[t.cookie];
    c.target = static_cast<std::byte*>(t.address);
    c.came.resize(t.bytes);
    rg_transfer aside = t;
    aside.address = c.came.data();
    return unix_transport::recv(aside);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::array<rg_completion, 64> got;
    const std::uint32_t came = adds_on_arrival::poll(timeout_ns, spin_ns, got);
    std::uint32_t count = 0;
    for (const rg_completion& c : std::span(got).first(came)) {
      if (copies_.contains(c.cookie))
        held_.push_back(c);
      else
        out[count++] = c;
    }
    for (; adding_.empty() && !held_.empty() && count < out.size(); held_.pop_front()) {
      const rg_completion& c = out[count++] = held_.front();
      const auto at = copies_.find(c.cookie);
      std::copy_n(at->second.came.begin(), c.bytes, at->second.target);
      copies_.erase(at);
    }
    return count;
  }
  struct copy {
    std::byte* target;
    std::vector<std::byte> came;
  };
  std::map<std::uint64_t, copy> copies_; // by cookie
  std::deque<rg_completion> held_;
};

// Defect: truncates floats for the wire type instead of rounding.
struct cuts_floats : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.flags |= RG_CAP_CONVERT;
    return c;
  }
  rg_status send(const rg_transfer& t) {
    if (!t.wire) return unix_transport::send(t);
    auto& half = halves_[t.cookie];
    half.resize(t.buffer.count);
    const auto* x = static_cast<const std::uint32_t*>(t.address);
    for (std::size_t i = 0; i < half.size(); ++i) half[i] = static_cast<std::uint16_t>(x[i] >> 16);
    return unix_transport::send(as_halves(t, half));
  }
  rg_status recv(const rg_transfer& t) {
    if (!t.wire) return unix_transport::recv(t);
    auto& half = halves_[t.cookie];
    half.resize(t.buffer.count);
    targets_[t.cookie] = static_cast<std::uint32_t*>(t.address);
    return unix_transport::recv(as_halves(t, half));
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count)) {
      const auto at = targets_.find(c.cookie);
      if (at == targets_.end()) continue;
      const auto& half = halves_[c.cookie];
      for (std::size_t i = 0; i < c.bytes / 2; ++i) at->second[i] = static_cast<std::uint32_t>(half[i]) << 16;
      c.bytes *= 2;
    }
    return count;
  }
  static rg_transfer as_halves(rg_transfer t, std::vector<std::uint16_t>& half) {
    t.address = half.data();
    t.buffer.type = RG_BF16;
    t.bytes = half.size() * sizeof(std::uint16_t);
    return t;
  }
  std::map<std::uint64_t, std::vector<std::uint16_t>> halves_; // by cookie
  std::map<std::uint64_t, std::uint32_t*> targets_;
};

// Defect: an all-reduce returns the rank's own input.
struct sums_alone : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t split(std::span<const std::uint32_t>) { return 0; }
  bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept {
    return kind == RG_OP_ALL_REDUCE && reduction == RG_SUM && type == RG_F32 && wire == 0;
  }
  rg_status begin(const rg_collective& c) {
    sums_.push_back({.cookie = c.cookie, .status = RG_OK, .bytes = 0});
    return RG_OK;
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::uint32_t count = 0;
    for (; count < out.size() && !sums_.empty(); sums_.pop_front()) out[count++] = sums_.front();
    return count ? count : unix_transport::poll(timeout_ns, spin_ns, out);
  }
  std::deque<rg_completion> sums_;
};

// Defect: allocated memory is not zeroed.
struct used_memory : unix_transport {
  using unix_transport::unix_transport;
  void* allocate(rg_region region, std::uint64_t bytes, const rg_memory&) {
    void* const p = std::aligned_alloc(64, bytes); // the suite asks for whole lines
    std::memset(p, 0x55, bytes);
    memory_[region].reset(p);
    return p;
  }
  void remove(rg_region region) noexcept { memory_.erase(region); }
  struct free_it {
    void operator()(void* p) const { std::free(p); }
  };
  std::map<rg_region, std::unique_ptr<void, free_it>> memory_;
};

} // namespace

RG_PLUGIN("broken_extensions", "1.0",
          rg::transport<adds_on_arrival>("adds_on_arrival", "broken: adds in the order of arrival"),
          rg::transport<adds_in_sixteens>("adds_in_sixteens", "broken: adds whole lines only"),
          rg::transport<overstates_sums>("overstates_sums", "broken: every sum is as long as its receive"),
          rg::transport<copies_last>("copies_last", "broken: a copy overwrites what was added after it"),
          rg::transport<cuts_floats>("cuts_floats", "broken: does not round"),
          rg::transport<sums_alone>("sums_alone", "broken: an all-reduce of one rank"),
          rg::transport<used_memory>("used_memory", "broken: its memory is not zeroed"))

// SPDX-License-Identifier: Apache-2.0
//
// The example transport, each time with one defect that the conformance suite must find.
#include "unix.hpp"

#include <atomic>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include <unistd.h>

namespace {

// Defect: of two messages in a row, the second is sent first.
struct reorders : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    auto& held = held_[{t.peer, t.lane}];
    if (!held) {
      held = t;
      return RG_OK;
    }
    unix_transport::send(t);
    unix_transport::send(*held);
    held.reset();
    return RG_OK;
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    for (auto& [where, held] : held_) {
      if (held) unix_transport::send(*held);
      held.reset();
    }
    return unix_transport::poll(timeout_ns, spin_ns, out);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<rg_transfer>> held_;
};

// Defect: a send completes before its bytes were read.
struct completes_early : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    early_.push_back({.cookie = t.cookie, .status = RG_OK, .bytes = t.buffer.count});
    said_.insert(t.cookie);
    return unix_transport::send(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::uint32_t count = 0;
    for (; count < out.size() && !early_.empty(); early_.pop_front()) out[count++] = early_.front();
    if (count) return count;
    const std::uint32_t ended = unix_transport::poll(timeout_ns, spin_ns, out);
    for (std::uint32_t i = 0; i < ended; ++i)
      if (!said_.erase(out[i].cookie)) out[count++] = out[i];
    return count;
  }
  std::deque<rg_completion> early_;
  std::set<std::uint64_t> said_;
};

// Sends a copy later, so buffers may be reused. Defect: close() drops unsent copies.
struct drops_at_close : completes_early {
  using completes_early::completes_early;
  rg_status send(const rg_transfer& t) {
    const auto* const first = static_cast<const std::byte*>(t.address);
    copies_.emplace_back(first, first + t.bytes);
    rg_transfer copy = t;
    copy.address = copies_.back().data();
    return completes_early::send(copy);
  }
  std::deque<std::vector<std::byte>> copies_;
};

// Defect: close() leaves the connections open until the instance is destroyed.
struct closes_nothing : unix_transport {
  using unix_transport::unix_transport;
  void close(std::uint64_t) {}
};

// Defect: every receive completes with its own length.
struct overstates : unix_transport {
  using unix_transport::unix_transport;
  rg_status recv(const rg_transfer& t) {
    posted_[t.cookie] = t.bytes;
    return unix_transport::recv(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count))
      if (const auto at = posted_.find(c.cookie); at != posted_.end() && c.status == RG_OK) c.bytes = at->second;
    return count;
  }
  std::map<std::uint64_t, std::uint64_t> posted_;
};

// Defect: returns RG_AGAIN, but sends the message.
struct takes_and_refuses : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    const rg_status s = unix_transport::send(t);
    return s == RG_OK && ++taken_ % 1000 == 0 ? RG_AGAIN : s;
  }
  std::uint64_t taken_ = 0;
};

// Defect: operations succeed although the peer failed.
struct never_fails : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count)) c.status = RG_OK;
    return count;
  }
};

struct takes_anything : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) { return t.peer < 7 && t.address ? unix_transport::send(t) : rg_status{RG_OK}; }
};

struct loses_last_byte : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    rg_transfer less = t;
    if (less.bytes > 4096 && less.buffer.type == RG_U8) --less.bytes;
    return unix_transport::send(less);
  }
};

// Defect: computes the length of a message from the types that it knows.
struct knows_few_types : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    if (t.buffer.type > RG_U8) throw rg::error(RG_E_OPERATION, "unknown type");
    return unix_transport::send(t);
  }
};

struct spins : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t, std::span<rg_completion> out) {
    return unix_transport::poll(timeout_ns, timeout_ns, out);
  }
};

// Defect: a poll() that may wait never returns if no operation completes.
struct never_returns : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (timeout_ns)
      for (;;) pause();
    return unix_transport::poll(timeout_ns, spin_ns, out);
  }
};

// Correct: the send of a message that is too long succeeds, as with tag matching.
struct tells_the_receiver : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.flags &= ~static_cast<std::uint32_t>(RG_CAP_LONG_FAILS_SENDER);
    return c;
  }
  rg_status send(const rg_transfer& t) {
    sends_.insert(t.cookie);
    return unix_transport::send(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count))
      if (sends_.erase(c.cookie) && c.status == RG_E_OPERATION) c.status = RG_OK;
    return count;
  }
  std::set<std::uint64_t> sends_;
};

// Defect: listen() always fails with the same text.
struct has_no_device : unix_transport {
  using unix_transport::unix_transport;
  rg_blob listen(const rg_world&) { throw rg::error(RG_E_DEVICE, "device mlx9_0 is not there"); }
};

struct counts_nothing : unix_transport {
  using unix_transport::unix_transport;
  rg_counters counters() const { return {}; }
};

// Defect: its completions have time stamps of another clock.
struct has_its_own_time : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count))
      c.time_ns = static_cast<std::uint64_t>(std::time(nullptr)) * 1'000'000'000;
    return count;
  }
};

// Defect: completes a cancelled operation, but leaves it posted, so that a message completes it again.
struct cancels_twice : unix_transport {
  using unix_transport::unix_transport;
  void cancel_operation(std::uint64_t cookie) { cancelled_.push_back(cookie); }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (cancelled_.empty()) return unix_transport::poll(timeout_ns, spin_ns, out);
    out[0] = {.cookie = cancelled_.back(), .status = RG_E_CANCELLED, .bytes = 0};
    cancelled_.pop_back();
    return 1;
  }
  std::vector<std::uint64_t> cancelled_;
};

// Defect: every other call starts its own counter anew.
struct counts_anew : unix_transport {
  using unix_transport::unix_transport;
  std::span<const rg_counter> own_counters() {
    const std::uint64_t sent = counters().bytes_sent;
    own_ = rg::counter("sent_bytes", calls_++ % 2 == 0 ? sent : 0);
    return {&own_, 1};
  }
  rg_counter own_{};
  unsigned calls_ = 0;
};

struct crashes_on_cancel : unix_transport {
  using unix_transport::unix_transport;
  void cancel(std::uint32_t) { std::abort(); }
};

struct cancels_everybody : unix_transport {
  using unix_transport::unix_transport;
  rg_blob listen(const rg_world& world) {
    ranks_ = world.size;
    return unix_transport::listen(world);
  }
  void cancel(std::uint32_t) {
    for (std::uint32_t peer = 0; peer < ranks_; ++peer) unix_transport::cancel(peer);
  }
  std::uint32_t ranks_ = 0;
};

struct leaves_a_file : unix_transport {
  leaves_a_file(const rg_host* host, const rg::parameters_t<unix_transport>& p) : unix_transport(host, p) {
    std::ofstream(std::filesystem::temp_directory_path() / ("left-by-" + std::to_string(::getpid()))) << "mine\n";
  }
};

// Defect: rejects a choice of its own parameter table, without a text.
struct refuses_a_choice : unix_transport {
  struct parameters {
    std::string mode = "eager";
  };
  static constexpr auto fields =
      rg::fields(rg::field("mode", &parameters::mode, "how it behaves").one_of("eager", "rendezvous"));
  refuses_a_choice(const rg_host* host, const parameters& p) : unix_transport(host, {}) {
    if (p.mode == "rendezvous") throw rg::error(RG_E_CONFIG, "");
  }
};

// Defect: truncates lengths to 31 bits.
struct counts_in_31_bits : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    rg_transfer less = t;
    less.bytes &= 0x7fffffff;
    return unix_transport::send(less);
  }
};

// Defect: receives nothing from a peer while it sends to it.
struct one_way_at_a_time : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    sends_.insert(t.cookie);
    return unix_transport::send(t);
  }
  rg_status recv(const rg_transfer& t) {
    if (!sends_.empty()) throw rg::error(RG_E_OPERATION, "a message is on its way out");
    return unix_transport::recv(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (const rg_completion& c : out.first(count)) sends_.erase(c.cookie);
    return count;
  }
  std::set<std::uint64_t> sends_;
};

// Defect: a lane waits while another one has something to send.
struct one_lane_at_a_time : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    for (const auto& [cookie, lane] : sends_)
      if (lane != t.lane) throw rg::error(RG_E_OPERATION, "lane " + std::to_string(lane) + " is not done yet");
    sends_[t.cookie] = t.lane;
    return unix_transport::send(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (const rg_completion& c : out.first(count)) sends_.erase(c.cookie);
    return count;
  }
  std::map<std::uint64_t, std::uint32_t> sends_; // lanes by cookie
};

struct wants_alignment : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    if (reinterpret_cast<std::uintptr_t>(t.address) % 4) throw rg::error(RG_E_OPERATION, "an address of no float");
    return unix_transport::send(t);
  }
};

// Defect: reports a peer's death as RG_E_OPERATION.
struct mistakes_a_death : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count))
      if (c.status == RG_E_PEER) c.status = RG_E_OPERATION;
    return count;
  }
};

struct cannot_spin : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (spin_ns) throw rg::error(RG_E_OPERATION, "this one only sleeps");
    return unix_transport::poll(timeout_ns, spin_ns, out);
  }
};

// Defect: wake() makes poll() report a completion of no operation.
struct invents_a_completion : unix_transport {
  using unix_transport::unix_transport;
  void wake() noexcept {
    woken_.store(true);
    unix_transport::wake();
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    if (count || !woken_.exchange(false)) return count;
    out[0] = {.cookie = 0, .status = RG_OK, .bytes = 0};
    return 1;
  }
  std::atomic<bool> woken_{false};
};

} // namespace

RG_PLUGIN("broken_transports", "1.0", rg::transport<reorders>("reorders", "broken: swaps messages"),
          rg::transport<completes_early>("completes_early", "broken: a send is over before its bytes are safe"),
          rg::transport<drops_at_close>("drops_at_close", "broken: close does not send what is left"),
          rg::transport<closes_nothing>("closes_nothing", "broken: close() does nothing"),
          rg::transport<overstates>("overstates", "broken: every message is as long as its receive"),
          rg::transport<takes_and_refuses>("takes_and_refuses", "broken: what was refused is sent, too"),
          rg::transport<never_fails>("never_fails", "broken: what failed is said to have worked"),
          rg::transport<takes_anything>("takes_anything", "broken: accepts what it cannot send"),
          rg::transport<cancels_everybody>("cancels_everybody", "broken: cancels all for one"),
          rg::transport<loses_last_byte>("loses_last_byte", "broken: long messages arrive a byte shorter"),
          rg::transport<knows_few_types>("knows_few_types", "broken: refuses types of elements that it does not know"),
          rg::transport<spins>("spins", "broken: uses a core while it waits"),
          rg::transport<counts_in_31_bits>("counts_in_31_bits", "broken: two GiB are nothing"),
          rg::transport<one_way_at_a_time>("one_way_at_a_time", "broken: does not receive while it sends"),
          rg::transport<one_lane_at_a_time>("one_lane_at_a_time", "broken: lanes wait for each other"),
          rg::transport<wants_alignment>("wants_alignment", "broken: not from any address"),
          rg::transport<mistakes_a_death>("mistakes_a_death", "broken: a dead peer is no error of its own"),
          rg::transport<cannot_spin>("cannot_spin", "broken: only sleeps"),
          rg::transport<invents_a_completion>("invents_a_completion", "broken: completes nothing to wake"),
          rg::transport<never_returns>("never_returns", "broken: a poll that waits does so for ever"),
          rg::transport<tells_the_receiver>("tells_the_receiver", "nothing wrong: as over tag matching"),
          rg::transport<has_no_device>("has_no_device", "broken: cannot be opened"),
          rg::transport<counts_nothing>("counts_nothing", "broken: has no counters"),
          rg::transport<cancels_twice>("cancels_twice", "broken: a cancelled operation completes twice"),
          rg::transport<has_its_own_time>("has_its_own_time", "broken: time stamps are not of CLOCK_MONOTONIC"),
          rg::transport<counts_anew>("counts_anew", "broken: a counter of its own decreases"),
          rg::transport<crashes_on_cancel>("crashes_on_cancel", "broken: aborts"),
          rg::transport<leaves_a_file>("leaves_a_file", "broken: a file for every instance"),
          rg::transport<refuses_a_choice>("refuses_a_choice", "broken: not every value of its table will do"))

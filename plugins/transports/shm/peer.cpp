// SPDX-License-Identifier: Apache-2.0
#include "peer.hpp"

#include "arithmetic.hpp"

#include <poll.h>

namespace shm {

peer::peer(instance_state& home, std::uint32_t rank, file_descriptor socket, control_area control, mapping memory)
    : home_(home), rank_(rank), socket_(std::move(socket)), control_(std::move(control)), memory_(std::move(memory)),
      own_link_(home.control.link(rank)), their_link_(control_.link(home.rank)), lanes_(home.lanes) {
  for (std::uint32_t l = 0; l < home.lanes; ++l) {
    lanes_[l].out = home.control.ring<ring_producer>(rank, l);
    lanes_[l].in = control_.ring<ring_consumer>(home.rank, l);
  }
}

namespace {

// Most bytes of a part: the receiver adds or copies it while the sender writes the next one. Chosen by measurement
// (docs/results/comm.md).
constexpr std::uint64_t most_in_part = 16 << 10;

// The outcome of a send as its receiver reports it: OK, or too long for the receive.
rg_status outcome_of(const record* r) noexcept {
  const rg_status status = r->status.load(std::memory_order_relaxed);
  return status == RG_OK ? RG_OK : RG_E_OPERATION;
}

} // namespace

// ------------------------------------------------------------------------------------------------------ sending ---

void peer::send(const rg_transfer& t, std::uint64_t bytes) {
  if (lost_) throw rg::error(cancelled_ ? RG_E_CANCELLED : RG_E_PEER, "shm: cannot send: " + loss());
  lane& l = lanes_[t.lane];
  l.sends.push_back({.address = static_cast<const std::byte*>(t.address),
                     .bytes = bytes,
                     .cookie = t.cookie,
                     .moved = 0,
                     .end = 0,
                     .last = nullptr,
                     .status = RG_OK,
                     .is_eager = bytes <= home_.eager});
  push_sends(l);
}

bool peer::push_sends(lane& l) {
  bool moved = false;
  for (std::uint64_t done = 0; !lost_ && done < unit_bytes && l.in_ring < l.sends.size(); moved = true) {
    outgoing& op = l.sends[l.in_ring];
    const bool is_direct = !op.is_eager && home_.memory.holds(op.address, op.bytes);
    const std::uint64_t bytes = is_direct ? write_direct(l, op) : write_part(l, op);
    if (bytes == 0) break;
    done += bytes;
    if (!is_direct && op.moved < op.bytes) continue;
    op.end = l.out.head();
    ++l.in_ring;
    ++home_.counters.messages_sent;
    home_.eager_messages += op.is_eager;
    home_.direct_messages += is_direct; // the rest: through the ring in parts
  }
  return retire_sends(l) || moved;
}

std::uint64_t peer::write_direct(lane& l, outgoing& op) {
  record* r = reserve(l, 0);
  if (!r) return 0;
  r->kind = static_cast<std::uint16_t>(record_kind::direct);
  r->total = op.bytes;
  r->offset = home_.memory.offset_of(op.address);
  r->bytes = 0;
  op.last = r;
  home_.counters.bytes_sent += op.bytes;
  publish(l, r, 0);
  return record_bytes(0);
}

std::uint64_t peer::write_part(lane& l, outgoing& op) {
  const std::uint64_t n = std::min({op.bytes - op.moved, l.out.largest_part(), most_in_part});
  record* r = reserve(l, n);
  if (!r) return 0;
  if (n == most_in_part) wake_for(l); // the peer wakes up while the bytes are copied
  r->kind = static_cast<std::uint16_t>(record_kind::part);
  r->total = op.bytes;
  r->waits = !op.is_eager;
  r->bytes = static_cast<std::uint32_t>(n);
  if (n > 0) std::memcpy(r->payload(), op.address + op.moved, n);
  op.moved += n;
  op.last = r;
  publish(l, r, n);
  return record_bytes(n);
}

record* peer::reserve(lane& l, std::uint64_t payload) noexcept {
  if (record* r = l.out.reserve(payload)) return r;
  look_for_room(l);
  if (record* r = l.out.reserve(payload)) return r;
  l.out.starve();
  look_for_room(l); // room may have been made before the peer could see `starved`
  return l.out.reserve(payload);
}

// Room that it finds is about to be used: the outcomes in the records there must be read before.
void peer::look_for_room(lane& l) noexcept {
  l.out.look();
  for (std::size_t i = 0; i < l.in_ring; ++i) {
    outgoing& op = l.sends[i];
    if (op.is_eager || !op.last) continue;
    if (!l.out.has_seen(op.end)) break;
    op.status = outcome_of(op.last);
    op.last = nullptr;
  }
}

void peer::publish(lane& l, record* r, std::uint64_t payload) noexcept {
  home_.counters.bytes_sent += record_bytes(payload);
  l.out.publish_with_payload(r, payload);
  wake_for(l);
}

void peer::wake_for(lane& l) noexcept {
  if (control_.header().sleep.sleeps() && l.out.is_wanted()) wake();
}

bool peer::retire_sends(lane& l) {
  bool moved = false;
  while (l.in_ring > 0) {
    const outgoing& op = l.sends.front();
    if (!op.is_eager && !l.out.passed(op.end)) break;
    end_send(l, op.is_eager || !op.last ? op.status : outcome_of(op.last));
    moved = true;
  }
  while (lost_ && !l.sends.empty() && !accesses_our_heap()) {
    end_send(l, RG_E_PEER);
    moved = true;
  }
  return moved;
}

void peer::end_send(lane& l, rg_status status) {
  if (status == RG_E_PEER) report_loss(status);
  if (status == RG_E_OPERATION)
    home_.report(status, "shm: a message of " + std::to_string(l.sends.front().bytes) + " bytes to rank " +
                             std::to_string(rank_) +
                             " does not fit the receive posted for it: it is longer, or no whole number of "
                             "floats where they are added");
  home_.complete(l.sends.front().cookie, status);
  l.sends.pop_front();
  if (l.in_ring > 0) --l.in_ring;
}

// ---------------------------------------------------------------------------------------------------- receiving ---

void peer::receive(const rg_transfer& t, std::uint64_t bytes) {
  if (cancelled_) throw rg::error(RG_E_CANCELLED, "shm: cannot receive: " + loss());
  lanes_[t.lane].receives.push_back({.address = static_cast<std::byte*>(t.address),
                                     .capacity = bytes,
                                     .cookie = t.cookie,
                                     .number = home_.receives_posted++,
                                     .total = 0,
                                     .moved = 0,
                                     .asked_at = UINT64_MAX,
                                     .status = RG_OK,
                                     .adds = (t.flags & RG_TRANSFER_ADD) != 0,
                                     .begun = false,
                                     .is_free = false});
}

bool peer::pull_receives(lane& l) {
  bool moved = false;
  for (std::uint64_t done = 0; done < unit_bytes && !l.receives.empty(); moved = true) {
    incoming& op = l.receives.front();
    record* r = distrusted_ ? nullptr : l.in.peek();
    if (!r) {
      if (!lost_) break;
      end_receive(l, RG_E_PEER);
      continue;
    }
    if (!may_begin(op)) break;
    if (!op.begun) begin(op, r);
    switch (static_cast<record_kind>(read_once(r->kind))) {
    case record_kind::part: done += take_part(l, op, r); break;
    case record_kind::direct: done += take_direct(l, op, r); break;
    default:
      distrust("sent an invalid record");
      end_receive(l, RG_E_PEER);
      return true;
    }
  }
  return moved;
}

bool peer::may_begin(incoming& op) const noexcept {
  if (op.is_free || op.asked_at == home_.receives_ended) return op.is_free;
  op.asked_at = home_.receives_ended;
  const std::uint64_t outstanding = home_.receives_posted - home_.receives_ended;
  return op.is_free = outstanding == 1 || !overlaps_earlier(op);
}

bool peer::overlaps_earlier(const incoming& op) const noexcept {
  for (const auto& other : home_.peers) {
    if (!other) continue;
    for (const lane& l : other->lanes_) {
      for (std::size_t i = 0; i < l.receives.size() && l.receives[i].number < op.number; ++i) {
        const incoming& earlier = l.receives[i];
        if (earlier.address < op.address + op.capacity && op.address < earlier.address + earlier.capacity) return true;
      }
    }
  }
  return false;
}

void peer::begin(incoming& op, const record* r) {
  op.begun = true;
  op.total = read_once(r->total);
  const char* why = op.total > op.capacity ? "longer than its receive"
                    : op.adds && op.total % sizeof(float) != 0
                        ? "not a whole number of floats, to be added to a receive"
                        : nullptr;
  if (!why) return;
  op.status = RG_E_OPERATION;
  home_.report(op.status, "shm: a message of " + std::to_string(op.total) + " bytes from rank " +
                              std::to_string(rank_) + " is " + why + " of " + std::to_string(op.capacity) + " bytes");
}

std::uint64_t peer::take_part(lane& l, incoming& op, record* r) {
  const std::uint64_t bytes = read_once(r->bytes);
  if (!l.in.is_sound(bytes) || bytes > op.total - op.moved ||
      (op.adds && op.status == RG_OK && bytes % sizeof(float))) {
    distrust("sent an invalid record");
    end_receive(l, RG_E_PEER);
    return 0;
  }
  if (op.status == RG_OK) take(op, r->payload(), bytes);
  op.moved += bytes;
  home_.counters.bytes_received += record_bytes(bytes);
  const bool is_last = op.moved == op.total;
  pass(l, r, bytes, op.status, is_last && read_once(r->waits) != 0);
  if (is_last) end_receive(l, op.status);
  return record_bytes(bytes);
}

std::uint64_t peer::take_direct(lane& l, incoming& op, record* r) {
  std::uint64_t bytes = 0;
  if (op.status == RG_OK) {
    const std::uint64_t offset = read_once(r->offset);
    if (!memory_.spans(offset, op.total)) {
      distrust("sent an address outside its heap");
      end_receive(l, RG_E_PEER);
      return 0;
    }
    bytes = std::min(op.total - op.moved, unit_bytes);
    if (!access_heap([&] { take(op, memory_.base() + offset + op.moved, bytes); })) {
      end_receive(l, RG_E_PEER);
      return 0;
    }
    op.moved += bytes;
    home_.counters.bytes_received += bytes;
    if (op.moved < op.total) return bytes;
  }
  home_.counters.bytes_received += record_bytes(0);
  pass(l, r, 0, op.status, true);
  end_receive(l, op.status);
  return bytes + record_bytes(0);
}

void peer::take(incoming& op, const std::byte* from, std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  std::byte* to = op.address + op.moved;
  if (op.adds)
    add(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from), bytes / sizeof(float));
  else
    std::memcpy(to, from, bytes);
}

void peer::pass(lane& l, record* r, std::uint64_t payload, rg_status status, bool sender_waits) noexcept {
  if (l.in.pop(r, payload, status, sender_waits)) wake();
}

void peer::end_receive(lane& l, rg_status status) {
  if (status == RG_E_PEER) report_loss(status);
  const incoming& op = l.receives.front();
  if (status == RG_OK) ++home_.counters.messages_received;
  home_.complete(op.cookie, status, status == RG_OK ? op.moved : 0);
  l.receives.pop_front();
  ++home_.receives_ended;
}

// -------------------------------------------------------------------------------------------- losing the peer ---

bool peer::progress(std::uint32_t lane_number) {
  lane& l = lanes_[lane_number];
  bool moved = false;
  if (cancelled_) {
    if (l.sends.empty() || accesses_our_heap()) return false;
    while (!l.sends.empty()) end_send(l, RG_E_CANCELLED);
    return true;
  }
  if (!l.sends.empty()) moved = push_sends(l);
  if (!l.receives.empty()) moved |= pull_receives(l);
  return moved;
}

void peer::look() {
  if (lost_) return;
  switch (their_link_.owner.closed.load()) {
  case closing::open: break;
  case closing::left: lose("has left"); break;
  default: lose("cancelled its operations with this rank");
  }
}

void peer::look_for_death(short events) {
  if (gone_ || (events & (POLLHUP | POLLRDHUP | POLLERR)) == 0) return;
  look(); // it may have closed properly just before
  gone_ = true;
  if (!lost_) lose("died");
}

void peer::lose(const char* how) {
  lost_ = true;
  how_lost_ = how;
}

void peer::report_loss(rg_status status) const {
  home_.report(status, "shm: " + loss());
}

void peer::distrust(const char* how) {
  distrusted_ = true;
  own_link_.owner.closed.store(closing::cancelled);
  lose(how);
}

bool peer::read_socket() {
  constexpr std::size_t most = 1024; // bounds the memory that a peer can make this rank use
  while (notices_.size() < most) {
    group_notice n{};
    const ssize_t bytes = ::recv(socket_.get(), &n, sizeof n, MSG_DONTWAIT);
    if (bytes < 0) return errno == EAGAIN || errno == EINTR;
    if (bytes == 0) return false;
    if (bytes == static_cast<ssize_t>(sizeof n)) notices_.push_back(n);
  }
  return true;
}

std::optional<group_notice> peer::take_notice() {
  if (notices_.empty()) return std::nullopt;
  const group_notice n = notices_.front();
  notices_.pop_front();
  return n;
}

void peer::announce_sleep() noexcept {
  for (lane& l : lanes_) l.in.set_wanted(!l.receives.empty());
}

void peer::cancel() {
  cancelled_ = true;
  if (!lost_) lose("was cancelled");
  own_link_.owner.closed.store(closing::cancelled);
  wake();
  for (lane& l : lanes_)
    while (!l.receives.empty()) end_receive(l, RG_E_CANCELLED);
  for (std::uint32_t l = 0; l < lanes_.size(); ++l) progress(l);
}

bool peer::cancel_operation(std::uint64_t cookie) {
  for (lane& l : lanes_) {
    for (std::size_t i = 0; i < l.sends.size(); ++i) {
      if (l.sends[i].cookie != cookie) continue;
      if (i < l.in_ring || l.sends[i].moved > 0) return true;
      l.sends.erase(i);
      home_.complete(cookie, RG_E_CANCELLED);
      return true;
    }
    for (std::size_t i = 0; i < l.receives.size(); ++i) {
      if (l.receives[i].cookie != cookie) continue;
      if (l.receives[i].begun) return true;
      l.receives.erase(i);
      home_.complete(cookie, RG_E_CANCELLED);
      ++home_.receives_ended; // receives that overlap this one may begin
      return true;
    }
  }
  return false;
}

void peer::leave() noexcept {
  std::uint32_t before = closing::open; // `cancelled` stays: the peer was cancelled, or it broke the protocol
  if (own_link_.owner.closed.compare_exchange_strong(before, closing::left)) wake();
}

} // namespace shm

// SPDX-License-Identifier: Apache-2.0
#include "one_sided.hpp"

namespace shm {

region_key expose(instance_state& home, std::uint64_t offset, std::uint64_t bytes) {
  for (std::uint32_t slot = 0; slot < control_area::most_exposed; ++slot) {
    exposure& e = home.control.exposed(slot);
    if (e.id.load() != 0) continue;
    e.offset = offset;
    e.bytes = bytes;
    const region_key key{++home.exposures, home.rank, slot};
    e.id.store(key.id);
    return key;
  }
  throw rg::error(RG_E_OPERATION,
                  "shm: cannot expose more than " + std::to_string(control_area::most_exposed) + " regions at a time");
}

void withdraw(instance_state& home, const region_key& key) noexcept {
  home.control.exposed(key.slot).id.store(0);
}

one_sided::one_sided(instance_state& home, peer& other)
    : home_(home), other_(other), out_(home.control.ring<ring_producer>(other.rank(), home.lanes)),
      in_(other.control().ring<ring_consumer>(home.rank, home.lanes)) {}

void one_sided::begin(const rg_one_sided_transfer& t, bool writes) {
  other_.look();
  if (other_.is_lost())
    throw rg::error(other_.is_cancelled() ? RG_E_CANCELLED : RG_E_PEER, "shm: cannot put or get: " + other_.loss());
  if (!t.address && t.bytes > 0) throw rg::error(RG_E_OPERATION, "shm: a put or get has no local bytes");
  operations_.push_back({.local = static_cast<std::byte*>(t.address),
                         .remote = find(t),
                         .bytes = t.bytes,
                         .moved = 0,
                         .notification = writes ? t.notification : 0,
                         .cookie = t.cookie,
                         .writes = writes});
}

std::byte* one_sided::find(const rg_one_sided_transfer& t) {
  const std::string who = "shm: a put or get with rank " + std::to_string(other_.rank());
  region_key key;
  std::memcpy(&key, t.key, sizeof key);
  if (key.rank != other_.rank() || key.slot >= control_area::most_exposed || key.id == 0 ||
      other_.control().exposed(key.slot).id.load() != key.id)
    throw rg::error(RG_E_OPERATION, who + " has a key of none of its regions");
  const exposure& e = other_.control().exposed(key.slot);
  const std::uint64_t start = read_once(e.offset), size = read_once(e.bytes);
  if (!other_.memory().spans(start, size)) {
    other_.distrust("exposed memory outside its heap");
    throw rg::error(RG_E_PEER, "shm: " + other_.loss());
  }
  if (t.offset > size || t.bytes > size - t.offset)
    throw rg::error(RG_E_OPERATION, who + " leaves the region: expected at most " + std::to_string(size) +
                                        " bytes, got " + std::to_string(t.bytes) + " bytes at offset " +
                                        std::to_string(t.offset));
  return other_.memory().base() + start + t.offset;
}

bool one_sided::progress() {
  bool moved = take_notifications();
  for (std::uint64_t done = 0; done < unit_bytes && !operations_.empty(); moved = true) {
    operation& op = operations_.front();
    if (other_.is_lost()) {
      end(other_.is_cancelled() ? RG_E_CANCELLED : RG_E_PEER);
      continue;
    }
    const std::uint64_t before = op.moved;
    if (op.moved < op.bytes) move(op);
    done += op.moved - before + cache_line; // an operation without bytes is work, too
    if (op.moved < op.bytes) continue;
    if (op.notification != 0 && !notify(op)) return moved || op.moved > before;
    end(RG_OK);
  }
  return moved;
}

void one_sided::move(operation& op) {
  const std::uint64_t bytes = std::min(op.bytes - op.moved, unit_bytes);
  std::byte *const local = op.local + op.moved, *const remote = op.remote + op.moved;
  if (!other_.access_heap([&] { std::memcpy(op.writes ? remote : local, op.writes ? local : remote, bytes); })) return;
  op.moved += bytes;
  (op.writes ? home_.counters.bytes_sent : home_.counters.bytes_received) += bytes;
}

bool one_sided::notify(const operation& op) {
  record* r = out_.reserve(0);
  if (!r) {
    out_.starve();
    out_.look(); // room may have been made before the peer could see `starved`
    r = out_.reserve(0);
  }
  if (!r) return false;
  r->kind = static_cast<std::uint16_t>(record_kind::notice);
  r->total = op.bytes;
  r->offset = op.notification;
  r->bytes = 0;
  out_.publish_with_payload(r, 0);
  home_.counters.bytes_sent += record_bytes(0);
  other_.wake();
  return true;
}

void one_sided::end(rg_status status) {
  if (status == RG_E_PEER) other_.report_loss(status);
  const operation& op = operations_.front();
  home_.complete(op.cookie, status);
  operations_.pop_front();
}

bool one_sided::take_notifications() {
  constexpr int most = 64; // so that other work of progress() is not held up
  int taken = 0;
  for (; taken < most && !other_.is_cancelled() && !other_.is_distrusted(); ++taken) {
    record* r = in_.peek();
    if (!r) break;
    if (read_once(r->kind) != static_cast<std::uint16_t>(record_kind::notice)) {
      other_.distrust("sent an invalid record");
      return true;
    }
    home_.complete(read_once(r->offset), RG_NOTIFIED, read_once(r->total));
    home_.counters.bytes_received += record_bytes(0);
    if (in_.pop(r, 0, RG_OK, false)) other_.wake();
  }
  return taken > 0;
}

} // namespace shm

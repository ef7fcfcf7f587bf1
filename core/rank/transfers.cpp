// SPDX-License-Identifier: Apache-2.0
#include "rank/transfers.hpp"

#include "base/failure.hpp"
#include "memory/arithmetic.hpp"
#include "memory/conversion.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

std::uint64_t bytes_of(const rg_buffer& b) {
  return b.count * rg::size_of(b.type);
}

bool overlap(const rg_buffer& a, const rg_buffer& b) {
  return a.region == b.region && a.offset < b.offset + bytes_of(b) && b.offset < a.offset + bytes_of(a);
}

// target += source, or target = source, of `bytes` bytes.
void put_bytes(std::uint32_t type, void* to, const void* from, std::uint64_t bytes, bool add) {
  if (!add)
    std::memcpy(to, from, bytes);
  else if (type == RG_F64)
    arithmetic::add(std::span(static_cast<double*>(to), bytes / 8),
                    std::span(static_cast<const double*>(from), bytes / 8));
  else
    arithmetic::add(std::span(static_cast<float*>(to), bytes / 4),
                    std::span(static_cast<const float*>(from), bytes / 4));
}

conversion::half half_of(std::uint32_t wire) {
  return wire == RG_BF16 ? conversion::half::bf16 : conversion::half::fp16;
}

// The same of fp32 that came as, or, from oneself, goes by way of, a shorter type.
void put_converted(conversion::half type, std::span<float> to, std::span<const std::uint16_t> from, bool add) {
  add ? conversion::add(type, to, from) : conversion::widen(type, to, from);
}
void put_rounded(conversion::half type, std::span<float> to, std::span<const float> from, bool add) {
  std::array<std::uint16_t, 1024> wire; // stays in the first cache
  for (std::size_t first = 0; first < to.size(); first += wire.size()) {
    const std::size_t n = std::min(wire.size(), to.size() - first);
    conversion::narrow(type, std::span(wire).first(n), from.subspan(first, n));
    put_converted(type, to.subspan(first, n), std::span(wire).first(n), add);
  }
}

} // namespace

transfers::transfers(const rg_transport& functions, void* self, const rg_transport_caps& caps, plugin_host& host,
                     const region_table& regions, std::uint32_t rank, std::uint32_t size, std::uint32_t lanes)
    : functions_(functions), self_(self), adds_(caps.flags & RG_CAP_ADD), converts_(caps.flags & RG_CAP_CONVERT),
      host_(host), regions_(regions), rank_(rank), lanes_(lanes), lines_(std::size_t{size} * lanes * 2),
      self_sends_(lanes), self_receives_(lanes) {}

transfers::~transfers() = default;

transfers::operation* transfers::take(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane,
                                      const rg_buffer& buffer) {
  if (free_.empty()) {
    operations_.push_back(std::make_unique<operation>());
    free_.reserve(operations_.size());
    free_.push_back(operations_.back().get());
  }
  operation* o = free_.back();
  free_.pop_back();
  o->cookie = cookie;
  o->bytes = 0;
  o->target = buffer;
  o->target_address = regions_.address(buffer);
  o->transfer = rg::make_versioned<rg_transfer>();
  o->transfer.peer = peer;
  o->transfer.lane = lane;
  o->transfer.buffer = buffer;
  o->transfer.address = o->target_address;
  o->transfer.cookie = reinterpret_cast<std::uintptr_t>(o);
  o->source = nullptr;
  o->how = peer == rank_ ? way::self : way::transport;
  o->wire = 0;
  o->receive = o->add = o->arrived = false;
  o->fence = 0;
  ++outstanding_;
  return o;
}

// The transport sees memory of ours, of the type on the wire.
void transfers::through_scratch(operation* o) {
  o->how = way::scratch;
  if (o->wire) o->transfer.buffer.type = o->wire;
  o->transfer.buffer.region = 0;
  o->transfer.buffer.offset = 0;
  const std::uint64_t bytes = bytes_of(o->transfer.buffer);
  if (!regions_.ghosts() && o->scratch_bytes < bytes) {
    o->scratch = allocate_aligned(bytes);
    o->scratch_bytes = bytes;
  }
  o->transfer.address = regions_.ghosts() ? nullptr : o->scratch.get();
}

void transfers::send(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer,
                     std::uint32_t wire) {
  operation* o = take(cookie, peer, lane, buffer);
  o->wire = wire;
  if (o->how == way::self) {
    self_sends_[lane].push(o);
    match_self(lane);
    return;
  }
  if (wire && converts_) {
    o->transfer.wire = wire;
  } else if (wire) {
    through_scratch(o);
    if (!regions_.ghosts())
      conversion::narrow(half_of(wire), std::span(static_cast<std::uint16_t*>(o->transfer.address), buffer.count),
                         std::span(static_cast<const float*>(o->target_address), buffer.count));
  }
  post(o);
}

void transfers::recv(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer, bool add,
                     std::uint32_t wire) {
  operation* o = take(cookie, peer, lane, buffer);
  o->receive = true;
  o->add = add;
  o->wire = wire;
  if (o->how == way::transport) {
    if ((wire && !converts_) || (add && !(adds_ && buffer.type == RG_F32))) {
      through_scratch(o);
    } else {
      o->transfer.flags = add ? RG_TRANSFER_ADD : 0;
      o->transfer.wire = wire;
    }
  }
  receives_.push_back(o);
  if (o->how != way::transport) ++local_;
  if (o->how == way::self) {
    self_receives_[lane].push(o);
    match_self(lane);
  } else {
    post(o);
  }
}

void transfers::all_reduce(std::uint64_t cookie, const rg_collectives& collectives, std::uint32_t group,
                           const rg_buffer& buffer) {
  operation* o = take(cookie, rank_, 0, buffer);
  o->how = way::transport;
  auto c = rg::make_versioned<rg_collective>();
  c.group = group;
  c.buffer = buffer;
  c.address = o->target_address;
  c.cookie = o->transfer.cookie;
  check(collectives.all_reduce(self_, &c), host_, "transport");
}

// Behind what waits in the same line, else at once.
void transfers::post(operation* o) {
  fifo& l = line(o);
  if (l.empty() && try_post(o)) return;
  l.push(o);
  ++waiting_;
}

bool transfers::try_post(operation* o) {
  // The transport orders its own receives; it cannot know of those that are put in place here.
  if (o->receive && o->how == way::transport && local_ && waits_for_earlier(o, true)) return false;
  const rg_status s = o->receive ? functions_.recv(self_, &o->transfer) : functions_.send(self_, &o->transfer);
  if (s == RG_AGAIN) return false;
  if (s == RG_E_PEER || s == RG_E_CANCELLED)
    end(o, s);
  else
    check(s, host_, "transport");
  return true;
}

void transfers::post_waiting() {
  if (!waiting_) return;
  for (fifo& l : lines_)
    while (!l.empty() && try_post(l.front())) {
      l.pop();
      --waiting_;
    }
}

void transfers::match_self(std::uint32_t lane) {
  fifo &sends = self_sends_[lane], &receives = self_receives_[lane];
  while (!sends.empty() && !receives.empty()) {
    operation *s = sends.front(), *r = receives.front();
    sends.pop();
    receives.pop();
    if (bytes_of(s->target) > bytes_of(r->target))
      throw failure(exit_code::plugin, fmt::format("the strategy sends itself {} bytes where it receives {}",
                                                   bytes_of(s->target), bytes_of(r->target)));
    r->source = s;
    r->bytes = bytes_of(s->target);
    r->arrived = true;
  }
}

bool transfers::waits_for_earlier(const operation* o, bool only_local) const {
  for (const operation* e : receives_) {
    if (e == o) return false;
    if ((!only_local || e->how != way::transport) && overlap(e->target, o->target)) return true;
  }
  return false;
}

// What a receive brought goes where it belongs. Ghosts have no addresses and nothing to do.
void transfers::put(const operation& o) {
  void* const to = o.target_address;
  const void* const from = o.source ? o.source->target_address : o.scratch.get();
  if (!to || !from || !o.bytes) return;
  if (!o.wire) return put_bytes(o.target.type, to, from, o.bytes, o.add);
  const std::span values(static_cast<float*>(to), o.bytes / sizeof(float));
  if (o.source)
    put_rounded(half_of(o.wire), values, std::span(static_cast<const float*>(from), values.size()), o.add);
  else
    put_converted(half_of(o.wire), values, std::span(static_cast<const std::uint16_t*>(from), values.size()), o.add);
}

// Puts in place what has arrived and has nothing to wait for.
void transfers::settle_local() {
  if (!local_) return;
  for (std::size_t i = 0; i < receives_.size();) {
    operation* o = receives_[i];
    if (!o->arrived || waits_for_earlier(o, false)) {
      ++i;
      continue;
    }
    put(*o);
    if (o->source) end(o->source, RG_OK);
    end(o, RG_OK); // takes it out of receives_
  }
}

void transfers::end(operation* o, rg_status status) {
  rg_completion c{};
  c.cookie = o->cookie;
  c.status = status;
  c.bytes = o->bytes;
  c.fence = o->fence;
  ended_.push_back(c);
  if (o->receive) {
    receives_.erase(std::find(receives_.begin(), receives_.end(), o));
    if (o->how != way::transport) --local_;
  }
  free_.push_back(o);
  --outstanding_;
}

void transfers::poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::vector<rg_completion>& out) {
  settle_local();
  post_waiting();
  if (!ended_.empty()) timeout_ns = 0;
  // Room for what was refused may appear without a completion.
  constexpr std::uint64_t retry_ns = 1'000'000;
  if (waiting_) timeout_ns = std::min(timeout_ns, retry_ns);
  std::array<rg_completion, 64> completions;
  std::uint32_t count = 0;
  check(functions_.poll(self_, timeout_ns, spin_ns, completions.data(), completions.size(), &count), host_,
        "transport");
  for (std::uint32_t i = 0; i < count; ++i) {
    auto* o = reinterpret_cast<operation*>(static_cast<std::uintptr_t>(completions[i].cookie));
    o->bytes = completions[i].bytes; // in memory's type, not the wire's
    if (o->wire && o->how == way::scratch) o->bytes *= sizeof(float) / sizeof(std::uint16_t);
    o->fence = completions[i].fence;
    if (o->receive && o->how == way::scratch && completions[i].status == RG_OK)
      o->arrived = true;
    else
      end(o, completions[i].status);
  }
  settle_local();
  if (count) post_waiting();
  out.insert(out.end(), ended_.begin(), ended_.end());
  ended_.clear();
}

} // namespace regatta

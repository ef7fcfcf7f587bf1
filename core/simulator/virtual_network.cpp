// SPDX-License-Identifier: Apache-2.0
#include "virtual_network.hpp"

#include "folding.hpp"
#include "goal_recorder.hpp"
#include "shared_cores.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <regatta/collectives.hpp>
#include <regatta/ext/collectives.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

using rg::bytes_of;

std::unique_ptr<message_bytes> read(const void* address, std::uint64_t bytes) {
  if (!address || !bytes) return nullptr;
  const auto* const first = static_cast<const std::uint8_t*>(address);
  return std::make_unique<message_bytes>(first, first + bytes);
}

std::vector<std::uint32_t> links_or_own(std::uint32_t ranks, std::vector<std::uint32_t> link_of) {
  if (!link_of.empty()) return link_of;
  link_of.resize(ranks);
  std::iota(link_of.begin(), link_of.end(), 0u);
  return link_of;
}

} // namespace

virtual_network::virtual_network(std::uint32_t ranks, network_options options, std::vector<std::uint32_t> link_of)
    : options_(std::move(options)), functions_(make_functions(options_.collectives)),
      links_(links_or_own(ranks, std::move(link_of)), options_, events_, messages_, *this), index_(64, nothing) {
  for (std::uint32_t r = 0; r < ranks; ++r) {
    ranks_.push_back(std::make_unique<rank>());
    ranks_.back()->network = this;
    ranks_.back()->number = r;
  }
}

void* virtual_network::endpoint(std::uint32_t r) {
  return ranks_[r].get();
}

rg_transport_caps virtual_network::caps() const {
  auto c = rg::make_versioned<rg_transport_caps>();
  c.flags = RG_CAP_VIRTUAL | RG_CAP_ORDERED_RECEIVES | (options_.adds ? RG_CAP_ADD : 0) |
            (options_.exact ? RG_CAP_EXACT_SIZE : 0);
  c.memory = RG_MEMORY_HOST;
  c.p2p = RG_P2P_INDEPENDENT;
  return c;
}

void virtual_network::take_touched(std::vector<std::uint32_t>& out) {
  out.insert(out.end(), touched_.begin(), touched_.end());
  touched_.clear();
}

void virtual_network::advance(std::uint64_t t) {
  while (events_.next() <= t) {
    const event e = events_.pop();
    if (e.kind == rank_retries) {
      touched_.push_back(e.what);
    } else if (e.kind == collective_ends) {
      end_collective(e.what);
    } else if (e.kind == late_collective_ends) {
      const auto [who, cookie] = late_.front();
      late_.pop_front();
      end(who, cookie, RG_OK, 0);
    } else {
      links_.handle(e);
    }
  }
  events_.advance(t);
}

void virtual_network::end_collective(std::uint32_t number) {
  for (const auto& [who, what] : collectives_.finish(number)) {
    if (!options_.staggers || who % 2 == 0 || number % 2) {
      end(who, what.cookie, RG_OK, 0);
      continue;
    }
    late_.emplace_back(who, what.cookie);
    events_.after(50 * options_.latency_ns, late_collective_ends, 0);
  }
}

void virtual_network::end(std::uint32_t number, std::uint64_t cookie, rg_status status, std::uint64_t bytes) {
  if (recorder_) recorder_->ended(number, now(), cookie, bytes);
  rank& r = *ranks_[number];
  rg_completion c{};
  c.cookie = cookie;
  c.status = status;
  c.bytes = bytes;
  if (r.ended.empty()) touched_.push_back(number);
  r.ended.push_back(c);
  --outstanding_;
}

// ------------------------------------------------------------------------------------------------ channels ---

namespace {

std::size_t hash_of(std::uint32_t from, std::uint32_t to, std::uint32_t lane) {
  std::uint64_t x = (std::uint64_t{from} << 32 | to) * 0x9e3779b97f4a7c15 + lane;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9;
  return static_cast<std::size_t>(x ^ (x >> 32));
}

} // namespace

std::uint32_t virtual_network::channel_of(std::uint32_t from, std::uint32_t to, std::uint32_t lane) {
  const std::size_t mask = index_.size() - 1;
  std::size_t at = hash_of(from, to, lane) & mask;
  for (; index_[at] != nothing; at = (at + 1) & mask) {
    const channel& c = channels_[index_[at]];
    if (c.from == from && c.to == to && c.lane == lane) return index_[at];
  }
  const auto number = static_cast<std::uint32_t>(channels_.size());
  index_[at] = number;
  channels_.push_back({.from = from, .to = to, .lane = lane});
  if (channels_.size() * 2 > index_.size()) grow_index();
  return number;
}

void virtual_network::grow_index() {
  index_.assign(index_.size() * 2, nothing);
  const std::size_t mask = index_.size() - 1;
  for (std::uint32_t i = 0; i < channels_.size(); ++i) {
    std::size_t at = hash_of(channels_[i].from, channels_[i].to, channels_[i].lane) & mask;
    while (index_[at] != nothing) at = (at + 1) & mask;
    index_[at] = i;
  }
}

std::vector<virtual_network::counts> virtual_network::counted() const {
  std::vector<counts> all(ranks_.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    all[r].messages_received = ranks_[r]->received;
    all[r].bytes_received = ranks_[r]->bytes_received + ranks_[r]->collective_bytes;
    all[r].bytes_sent = all[r].collective_bytes = ranks_[r]->collective_bytes;
  }
  for (const channel& c : channels_) {
    if (!c.messages) continue;
    all[c.from].messages_sent += c.messages;
    all[c.from].bytes_sent += c.bytes;
    all[c.from].sent_to[{c.to, c.lane}] = {c.messages, c.bytes};
  }
  return all;
}

// ------------------------------------------------------------------------------------------------ messages ---

rg_status virtual_network::send(const rank& from, const rg_transfer& t) {
  ++outstanding_;
  const std::uint32_t m = messages_.take(), c = channel_of(from.number, t.peer, t.lane);
  network_message& x = messages_[m];
  x.cookie = t.cookie;
  x.bytes = bytes_of(t.buffer);
  x.address = t.address;
  x.content = read(t.address, x.bytes);
  x.from = from.number;
  x.to = t.peer;
  x.lane = static_cast<std::uint16_t>(t.lane);
  x.channel = c;
  x.converted = !t.wire ? 0 : t.wire == RG_BF16 ? 1 : 2;
  if (folded_) folded_->sent(now(), x.from, x.to, x.lane, x.bytes);
  if (recorder_) recorder_->send(x.from, now(), x.cookie, x.to, x.lane, x.bytes);
  if (options_.eager) {
    transmit(m);
  } else {
    channels_[c].sends.push(messages_, m);
    if (options_.one_queue) queues_[{from.number, t.peer}].push_back(c);
    match(c);
  }
  return RG_OK;
}

void virtual_network::transmit(std::uint32_t m) {
  channel& c = channels_[messages_[m].channel];
  c.messages += 1;
  c.bytes += messages_[m].bytes;
  links_.submit(m);
}

rg_status virtual_network::recv(rank& to, const rg_transfer& t) {
  ++outstanding_;
  const std::uint32_t r = receives_.take(), c = channel_of(t.peer, to.number, t.lane);
  receive& x = receives_[r];
  x.cookie = t.cookie;
  x.offset = t.buffer.offset;
  x.bytes = bytes_of(t.buffer);
  x.number = posted_++;
  x.rank = to.number;
  x.region = t.buffer.region;
  const bool can_add = options_.adds && !t.wire && t.buffer.type == RG_F32;
  (can_add ? x.adds : x.engine_adds) = t.flags & RG_TRANSFER_ADD;
  if (t.address && x.bytes)
    x.bytes_in = std::make_unique<receive::memory>(receive::memory{
        t.address, std::make_shared<received_bytes>(received_bytes{x.offset, x.adds, t.peer, t.lane, {}}), {}});
  if (recorder_) recorder_->receive(to.number, now(), x.cookie, t.peer, t.lane, x.bytes);
  to.posted.add(receives_, r);
  channels_[c].receives.push(receives_, r);
  match(c);
  return RG_OK;
}

// Matches the first messages of a channel with its first receives.
void virtual_network::match(std::uint32_t number) {
  std::deque<std::uint32_t>* const queue =
      options_.one_queue && !options_.eager ? &queues_[{channels_[number].from, channels_[number].to}] : nullptr;
  for (;;) {
    channel& c = channels_[number];
    slab_queue& messages = options_.eager ? c.landed : c.sends;
    if (queue && !queue->empty() && queue->front() != number) {
      if (channels_[queue->front()].receives.empty()) return;
      number = queue->front(); // its receive was posted while others' messages were before its own
      continue;
    }
    if (messages.empty() || c.receives.empty()) return;
    const std::uint32_t m = messages.pop(messages_), r = c.receives.pop(receives_);
    if (queue) queue->pop_front();
    if (options_.eager) {
      --unreceived_;
      arrive(r, m);
    } else {
      messages_[m].receive = r;
      transmit(m);
    }
  }
}

void virtual_network::left(std::uint32_t m) {
  if (options_.eager) {
    read_at_end(messages_[m]);
    end(messages_[m].from, messages_[m].cookie, RG_OK, 0);
  }
  links_.travel(m);
}

void virtual_network::arrived(std::uint32_t m) {
  if (!folded_) return links_.receive(m);
  copies_.clear();
  folded_->append_copies(messages_[m].from, messages_[m].to, copies_);
  for (const auto& [from, to] : copies_) {
    const std::uint32_t copy = messages_.take(), c = channel_of(from, to, messages_[m].lane);
    network_message& x = messages_[copy];
    x.bytes = messages_[m].bytes;
    x.time = messages_[m].time;
    x.from = from;
    x.to = to;
    x.lane = messages_[m].lane;
    x.channel = c;
    x.copied = true;
    x.converted = messages_[m].converted;
    links_.receive(copy);
  }
  if (folded_->is_simulated(messages_[m].to))
    links_.receive(m);
  else
    messages_.give(m);
}

bool virtual_network::adds(const network_message& m) const {
  const slab_queue& posted = channels_[m.channel].receives;
  const std::uint32_t r = m.receive != nothing ? m.receive : posted.head;
  return r != nothing && (receives_[r].adds || receives_[r].engine_adds);
}

std::uint64_t virtual_network::works(std::uint32_t r, bool receives, std::uint64_t earliest, std::uint64_t ns) {
  if (!cores_) return earliest;
  return cores_->work(r, receives ? shared_cores::receive : shared_cores::send, now(), earliest, ns) - ns;
}

void virtual_network::delivered(std::uint32_t m) {
  if (options_.eager) {
    const std::uint32_t c = messages_[m].channel;
    channels_[c].landed.push(messages_, m);
    ++unreceived_;
    return match(c);
  }
  read_at_end(messages_[m]);
  end(messages_[m].from, messages_[m].cookie, RG_OK, 0);
  arrive(messages_[m].receive, m);
}

void virtual_network::arrive(std::uint32_t number, std::uint32_t m) {
  receive& r = receives_[number];
  network_message& x = messages_[m];
  rank& to = *ranks_[x.to];
  if (x.copied) x.bytes = folded_->length(x.bytes, r.bytes);
  to.received += 1;
  to.bytes_received += x.bytes;
  r.arrived_bytes = x.bytes;
  if (x.content && r.bytes_in) r.bytes_in->content->content = std::move(*x.content);
  r.arrived = true;
  messages_.give(m);
  if (r.waits_for) return; // never before an earlier receive into the same bytes
  ready_.assign(1, number);
  while (!ready_.empty()) {
    const auto first = std::ranges::min_element(ready_, {}, [&](std::uint32_t e) { return receives_[e].number; });
    const std::uint32_t e = *first;
    *first = ready_.back();
    ready_.pop_back();
    freed_.clear();
    to.posted.remove(receives_, e, freed_);
    complete(e);
    for (const std::uint32_t f : freed_)
      if (receives_[f].arrived) ready_.push_back(f);
  }
}

// Copies a message to its target and ends the receive.
void virtual_network::complete(std::uint32_t number) {
  receive& r = receives_[number];
  if (r.bytes_in) require_kept(r);
  const rg_status status =
      r.arrived_bytes > r.bytes || (options_.exact && r.arrived_bytes < r.bytes) ? RG_E_PEER : RG_OK;
  if (r.bytes_in && status == RG_OK) {
    const message_bytes& bytes = r.bytes_in->content->content;
    if (r.adds) {
      auto* y = static_cast<float*>(r.bytes_in->address);
      const auto* x = reinterpret_cast<const float*>(bytes.data());
      for (std::size_t e = 0; e < bytes.size() / sizeof(float); ++e) y[e] += x[e];
    } else if (!bytes.empty()) {
      std::memcpy(r.bytes_in->address, bytes.data(), bytes.size());
    }
  }
  end(r.rank, r.cookie, status, r.arrived_bytes);
  receives_.give(number);
}

void virtual_network::read_at_end(network_message& m) {
  if (!m.content) return;
  auto now = read(m.address, m.bytes);
  if (*now != *m.content)
    report(
        fmt::format("rank {} changes bytes that it is sending: a send of {} bytes to rank {} on lane {} had not ended; "
                    "wait for it (co_await) before the buffer is written",
                    m.from, m.bytes, m.to, m.lane));
  m.content = std::move(now);
}

// A receive that adds keeps what was there. Any other one overwrites the message of an earlier one, which the strategy
// has had no time to read: legal only if both messages, or neither, have the same bytes there.
void virtual_network::require_kept(const receive& second) {
  for (const auto& a : second.bytes_in->over) {
    const received_bytes& b = *second.bytes_in->content;
    const std::uint64_t first = std::max(a->offset, b.offset),
                        end = std::min(a->offset + a->content.size(), b.offset + b.content.size());
    if (first >= end) continue;
    const bool same = std::equal(a->content.begin() + static_cast<std::ptrdiff_t>(first - a->offset),
                                 a->content.begin() + static_cast<std::ptrdiff_t>(end - a->offset),
                                 b.content.begin() + static_cast<std::ptrdiff_t>(first - b.offset));
    if (same && !a->adds) continue;
    report(fmt::format("rank {} has two receives outstanding into the same {} bytes: the message of rank {} on lane {} "
                       "overwrites that of rank {} on lane {}; use a buffer for each, or wait for the first one",
                       second.rank, end - first, b.peer, b.lane, a->peer, a->lane));
  }
}

std::multimap<std::uint32_t, std::string> virtual_network::waits() const {
  std::multimap<std::uint32_t, std::string> all;
  for (const channel& c : channels_) {
    for (std::uint32_t r = c.receives.head; r != nothing; r = receives_[r].next)
      all.emplace(c.to, fmt::format("to receive {} bytes from rank {} on lane {}", receives_[r].bytes, c.from, c.lane));
    for (std::uint32_t m = c.sends.head; m != nothing; m = messages_[m].next)
      all.emplace(c.from, fmt::format("to send {} bytes to rank {} on lane {}, {}", messages_[m].bytes, c.to, c.lane,
                                      c.receives.empty() ? "where no receive is posted for them"
                                                         : "behind those of other lanes"));
  }
  collectives_.append_waits(all);
  return all;
}

rg_status virtual_network::begin_collective(void* self, const rg_collective* c) {
  auto& r = *static_cast<rank*>(self);
  return r.network->collective(r, *c);
}

// The collective executes when the last member joins.
rg_status virtual_network::collective(rank& r, const rg_collective& c) {
  if (options_.hesitates && (r.refused = !r.refused)) {
    events_.after(options_.latency_ns, rank_retries, r.number);
    return RG_AGAIN;
  }
  ++outstanding_;
  if (recorder_) recorder_->collective();
  const std::uint32_t number = collectives_.join(r.number, c);
  if (number == UINT32_MAX) return RG_OK;
  events_.after(collectives_.ns(number, options_.bytes_per_ns, options_.latency_ns), collective_ends, number);
  collectives_.count(number,
                     [&](std::uint32_t member, std::uint64_t bytes) { ranks_[member]->collective_bytes += bytes; });
  return RG_OK;
}

rg_transport virtual_network::make_functions(bool collectives) {
  auto t = rg::make_versioned<rg_transport>();
  t.send = [](void* self, const rg_transfer* x) -> rg_status {
    auto& r = *static_cast<rank*>(self);
    return r.network->send(r, *x);
  };
  t.recv = [](void* self, const rg_transfer* x) -> rg_status {
    auto& r = *static_cast<rank*>(self);
    return r.network->recv(r, *x);
  };
  t.poll = [](void* self, std::uint64_t, std::uint64_t, rg_completion* out, std::uint32_t capacity,
              std::uint32_t* count) -> rg_status {
    auto& r = *static_cast<rank*>(self);
    *count = static_cast<std::uint32_t>(std::min<std::size_t>(capacity, r.ended.size() - r.polled));
    std::copy_n(r.ended.begin() + static_cast<std::ptrdiff_t>(r.polled), *count, out);
    r.polled += *count;
    if (r.polled == r.ended.size()) {
      r.ended.clear();
      r.polled = 0;
    }
    return RG_OK;
  };
  t.now = [](void* self) { return static_cast<rank*>(self)->network->now(); };
  if (!collectives) return t;
  static const rg_collectives functions = [] {
    auto c = rg::make_versioned<rg_collectives>();
    c.split = [](void* self, const std::uint32_t* members, std::uint32_t count, std::uint32_t* group) -> rg_status {
      *group = static_cast<rank*>(self)->network->collectives_.group({members, members + count});
      return RG_OK;
    };
    c.offers = [](void*, std::uint32_t kind, std::uint32_t, std::uint32_t type, std::uint32_t wire) -> std::uint32_t {
      return (!rg::reduces(kind) || type == RG_F32) &&
             (!wire || (type == RG_F32 && (wire == RG_BF16 || wire == RG_F16)));
    };
    c.begin = &virtual_network::begin_collective;
    return c;
  }();
  t.extension = [](void*, const char* id) -> const void* {
    return std::strcmp(id, RG_EXT_COLLECTIVES) == 0 ? &functions : nullptr;
  };
  return t;
}

} // namespace regatta

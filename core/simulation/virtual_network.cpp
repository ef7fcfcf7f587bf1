// SPDX-License-Identifier: Apache-2.0
#include "virtual_network.hpp"

#include "memory/conversion.hpp"
#include "memory/regions.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <regatta/collectives.hpp>
#include <regatta/ext/collectives.h>
#include <regatta/strategy.hpp>

namespace regatta {
namespace {

bool overlap(const rg_transfer& a, const rg_transfer& b) {
  return a.buffer.region && a.buffer.region == b.buffer.region &&
         a.buffer.offset < b.buffer.offset + bytes_of(b.buffer) &&
         b.buffer.offset < a.buffer.offset + bytes_of(a.buffer);
}

} // namespace

virtual_network::virtual_network(std::uint32_t ranks, network_options options)
    : options_(options), functions_(make_functions(options.collectives)) {
  for (std::uint32_t r = 0; r < ranks; ++r) {
    ranks_.push_back(std::make_unique<rank>());
    ranks_.back()->network = this;
    ranks_.back()->number = r;
  }
}

virtual_network::payload virtual_network::read(const rg_transfer& t) {
  payload p;
  p.size = bytes_of(t.buffer);
  if (t.address && p.size) {
    p.bytes.resize(p.size);
    std::memcpy(p.bytes.data(), t.address, p.size);
  }
  return p;
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

void virtual_network::advance(std::uint64_t t) {
  while (!events_.empty() && std::get<0>(events_.top()) <= t) {
    now_ = std::get<0>(events_.top());
    auto f = std::get<2>(events_.top());
    events_.pop();
    f();
  }
  now_ = std::max(now_, t);
}

void virtual_network::end(rank& r, std::uint64_t cookie, rg_status status, std::uint64_t bytes) {
  rg_completion c{};
  c.cookie = cookie;
  c.status = status;
  c.bytes = bytes;
  if (r.ended.empty()) touched_.push_back(r.number);
  r.ended.push_back(c);
  --outstanding_;
}

void virtual_network::transmit(rank& from, const rg_transfer& t, std::function<void()> left) {
  const std::uint64_t bytes = bytes_of(t.buffer);
  auto& [messages_to_peer, bytes_to_peer] = from.counted.sent_to[{t.peer, t.lane}];
  messages_to_peer += 1;
  bytes_to_peer += bytes;
  from.waiting.emplace(std::pair(t.lane, order_++), std::pair(bytes, std::move(left)));
  pump(from);
}

void virtual_network::pump(rank& from) {
  if (from.sending || from.waiting.empty()) return;
  auto [bytes, left] = std::move(from.waiting.begin()->second);
  from.waiting.erase(from.waiting.begin());
  from.sending = true;
  from.counted.messages_sent += 1;
  from.counted.bytes_sent += bytes;
  at(now_ + static_cast<std::uint64_t>(static_cast<double>(bytes) / options_.bytes_per_ns),
     [this, &from, left = std::move(left)] {
       left();
       from.sending = false;
       pump(from);
     });
}

rg_status virtual_network::send(rank& from, const rg_transfer& t) {
  ++outstanding_;
  const key k{from.number, t.peer, t.lane};
  const auto m = std::make_shared<message>(message{t, read(t)});
  if (!options_.eager) {
    channels_[k].sends.push_back(m);
    if (options_.one_queue) queues_[{from.number, t.peer}].push_back(t.lane);
    match(k);
    return RG_OK;
  }
  transmit(from, t, [this, &from, m, k] {
    auto content = std::make_shared<payload>(read_at_end(from, *m));
    end(from, m->transfer.cookie, RG_OK, 0);
    at(now_ + latency(from.number, m->transfer.peer), [this, k, content] {
      channels_[k].landed.push_back(std::move(*content));
      match(k);
    });
  });
  return RG_OK;
}

rg_status virtual_network::recv(rank& to, const rg_transfer& t) {
  ++outstanding_;
  auto r = std::make_shared<receive>();
  r->transfer = t;
  if (!(t.flags & RG_TRANSFER_ADD))
    std::ranges::copy_if(to.posted, std::back_inserter(r->over),
                         [&](const auto& e) { return overlap(e->transfer, t); });
  to.posted.push_back(r);
  const key k{t.peer, to.number, t.lane};
  channels_[k].receives.push_back(std::move(r));
  match(k);
  return RG_OK;
}

// Matches the first send of a channel with its first receive.
void virtual_network::match(key k) {
  channel& c = channels_[k];
  rank &from = *ranks_[std::get<0>(k)], &to = *ranks_[std::get<1>(k)];
  while (options_.eager && !c.landed.empty() && !c.receives.empty()) {
    const auto r = c.receives.front();
    auto content = std::move(c.landed.front());
    c.receives.pop_front();
    c.landed.pop_front();
    arrive(to, r, std::move(content));
  }
  std::deque<std::uint32_t>* const queue =
      options_.one_queue && !options_.eager ? &queues_[{from.number, to.number}] : nullptr;
  while (!options_.eager && !c.sends.empty() && !c.receives.empty()) {
    if (queue && queue->front() != std::get<2>(k)) return;
    const auto r = c.receives.front();
    const auto m = c.sends.front();
    c.receives.pop_front();
    c.sends.pop_front();
    if (queue) queue->pop_front();
    transmit(from, m->transfer, [this, &from, &to, r, m] {
      at(now_ + latency(from.number, to.number), [this, &from, &to, r, m] {
        auto content = read_at_end(from, *m);
        end(from, m->transfer.cookie, RG_OK, 0);
        arrive(to, r, std::move(content));
      });
    });
  }
  if (queue && !queue->empty() && queue->front() != std::get<2>(k)) match({from.number, to.number, queue->front()});
}

void virtual_network::arrive(rank& to, const std::shared_ptr<receive>& r, payload content) {
  to.counted.messages_received += 1;
  to.counted.bytes_received += content.size;
  r->content = std::move(content);
  r->arrived = true;
  complete_arrived(to);
}

// Copies arrived messages to their targets, but never before an earlier receive into the same bytes.
void virtual_network::complete_arrived(rank& r) {
  for (std::size_t i = 0; i < r.posted.size();) {
    const auto p = r.posted[i];
    const bool early = std::any_of(r.posted.begin(), r.posted.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const auto& e) { return overlap(e->transfer, p->transfer); });
    if (!p->arrived || early) {
      ++i;
      continue;
    }
    require_kept(r, *p);
    p->over.clear();
    const auto& [bytes, size] = p->content;
    const std::uint64_t room = bytes_of(p->transfer.buffer);
    const rg_status status = size > room || (options_.exact && size < room) ? RG_E_PEER : RG_OK;
    if (p->transfer.address && status == RG_OK) {
      if (p->transfer.flags & RG_TRANSFER_ADD) {
        auto* y = static_cast<float*>(p->transfer.address);
        const auto* x = reinterpret_cast<const float*>(bytes.data());
        for (std::size_t e = 0; e < bytes.size() / sizeof(float); ++e) y[e] += x[e];
      } else if (!bytes.empty()) {
        std::memcpy(p->transfer.address, bytes.data(), bytes.size());
      }
    }
    end(r, p->transfer.cookie, status, size);
    r.posted.erase(r.posted.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

virtual_network::payload virtual_network::read_at_end(const rank& from, const message& m) {
  payload now = read(m.transfer);
  if (now.bytes != m.posted.bytes)
    report(
        fmt::format("rank {} changes bytes that it is sending: a send of {} bytes to rank {} on lane {} had not ended; "
                    "wait for it (co_await) before the buffer is written",
                    from.number, now.size, m.transfer.peer, m.transfer.lane));
  return now;
}

// A receive that adds keeps what was there. Any other one overwrites the message of an earlier one, which the strategy
// has had no time to read: legal only if both messages, or neither, have the same bytes there.
void virtual_network::require_kept(const rank& r, const receive& second) {
  const rg_transfer& b = second.transfer;
  for (const auto& first_one : second.over) {
    const rg_transfer& a = first_one->transfer;
    const std::uint64_t first = std::max(a.buffer.offset, b.buffer.offset),
                        end = std::min(a.buffer.offset + first_one->content.bytes.size(),
                                       b.buffer.offset + second.content.bytes.size());
    if (first >= end) continue;
    const bool same =
        std::equal(first_one->content.bytes.begin() + static_cast<std::ptrdiff_t>(first - a.buffer.offset),
                   first_one->content.bytes.begin() + static_cast<std::ptrdiff_t>(end - a.buffer.offset),
                   second.content.bytes.begin() + static_cast<std::ptrdiff_t>(first - b.buffer.offset));
    if (same && !(a.flags & RG_TRANSFER_ADD)) continue;
    report(fmt::format("rank {} has two receives outstanding into the same {} bytes: the message of rank {} on lane {} "
                       "overwrites that of rank {} on lane {}; use a buffer for each, or wait for the first one",
                       r.number, end - first, b.peer, b.lane, a.peer, a.lane));
  }
}

std::multimap<std::uint32_t, std::string> virtual_network::waits() const {
  std::multimap<std::uint32_t, std::string> all;
  for (const auto& [k, c] : channels_) {
    const auto& [from, to, lane] = k;
    for (const auto& r : c.receives)
      all.emplace(to,
                  fmt::format("to receive {} bytes from rank {} on lane {}", bytes_of(r->transfer.buffer), from, lane));
    for (const auto& m : c.sends)
      all.emplace(
          from,
          fmt::format("to send {} bytes to rank {} on lane {}, {}", bytes_of(m->transfer.buffer), to, lane,
                      c.receives.empty() ? "where no receive is posted for them" : "behind those of other lanes"));
  }
  for (const auto& [k, g] : collectives_)
    for (const auto& [who, what] : g.joined)
      all.emplace(who, fmt::format("for the other members of a collective, {} of {} have begun it", g.joined.size(),
                                   groups_[k.first].size()));
  return all;
}

// The collective executes when the last member joins. Each member then waits as long as a ring takes: both halves of it
// for an all-reduce, one half for the others.
rg_status virtual_network::collective(rank& r, const rg_collective& c) {
  if (options_.hesitates && (r.refused = !r.refused)) {
    at(now_ + options_.latency_ns, [this, &r] { touched_.push_back(r.number); });
    return RG_AGAIN;
  }
  ++outstanding_;
  const auto& members = groups_[c.group];
  const std::uint64_t number = joined_[{c.group, r.number}]++;
  pending_collective& g = collectives_[{c.group, number}];
  if (!g.joined.empty() && g.joined.front().second.kind != c.kind)
    throw std::logic_error("the members of a group call collectives in different orders");
  g.joined.push_back({r.number, c});
  if (g.joined.size() < members.size()) return RG_OK;
  std::sort(g.joined.begin(), g.joined.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::uint64_t bytes = 0;
  for (const auto& [who, what] : g.joined) bytes = std::max({bytes, bytes_of(what.source), bytes_of(what.target)});
  if (c.wire) bytes /= sizeof(float) / sizeof(std::uint16_t);
  const std::uint64_t n = members.size(), halves = c.kind == RG_OP_ALL_REDUCE ? 2 : 1;
  const auto took =
      halves * (n - 1) *
      (static_cast<std::uint64_t>(static_cast<double>(bytes) / static_cast<double>(n) / options_.bytes_per_ns) +
       options_.latency_ns);
  at(now_ + took, [this, group = c.group, number] {
    const pending_collective all = std::move(collectives_[{group, number}]);
    collectives_.erase({group, number});
    write_results(all);
    for (const auto& [who, what] : all.joined) end(*ranks_[who], what.cookie, RG_OK, 0);
  });
  return RG_OK;
}

namespace {

using bytes_of_member = std::vector<std::byte>;

void round(std::uint32_t wire, std::span<float> values) {
  if (wire) conversion::round(wire == RG_BF16 ? conversion::half::bf16 : conversion::half::fp16, values);
}
void round(std::uint32_t wire, bytes_of_member& elements) {
  if (wire) round(wire, {reinterpret_cast<float*>(elements.data()), elements.size() / sizeof(float)});
}

// Summands are added in ascending order of rank. `sources`: all members' elements.
std::vector<float> reduced(const std::vector<bytes_of_member>& sources, std::uint32_t reduction, std::uint64_t count) {
  std::vector<float> all(count);
  for (std::size_t m = 0; m < sources.size(); ++m)
    for (std::uint64_t i = 0; i < count && !sources[m].empty(); ++i) {
      float x;
      std::memcpy(&x, sources[m].data() + i * sizeof x, sizeof x);
      all[i] = m == 0 ? x : reduction == RG_MAX ? std::max(all[i], x) : all[i] + x;
    }
  if (reduction == RG_AVERAGE)
    for (float& x : all) x /= static_cast<float>(sources.size());
  return all;
}

} // namespace

void virtual_network::write_results(const pending_collective& g) {
  // Sources are copied first, because collectives may be in place.
  std::vector<bytes_of_member> sources;
  for (const auto& [who, what] : g.joined) {
    const auto* first = static_cast<const std::byte*>(what.source_address);
    sources.emplace_back(first, first + (first ? bytes_of(what.source) : 0));
    round(what.wire, sources.back());
  }
  const std::uint64_t n = g.joined.size();
  for (std::uint64_t m = 0; m < n; ++m) {
    const rg_collective& c = g.joined[m].second;
    auto* const to = static_cast<std::byte*>(c.target_address);
    if (!to) continue; // a ghost, or unused
    const std::uint64_t element = rg::size_of(c.target.type);
    const auto put = [&](std::uint64_t at, const bytes_of_member& from, rg::chunk part) {
      std::memcpy(to + at * element, from.data() + part.first * element, part.count * element);
    };
    const auto whole = [&](std::uint64_t k) { return rg::chunk{0, sources[k].size() / element}; };
    switch (c.kind) {
    case RG_OP_ALL_REDUCE:
    case RG_OP_REDUCE:
    case RG_OP_REDUCE_SCATTER: {
      std::vector<float> all = reduced(sources, c.reduction, c.source.count);
      round(c.wire, all);
      const bool cut = c.kind == RG_OP_REDUCE_SCATTER;
      const rg::chunk own = cut ? rg::chunk_of(c.source.count, c.counts, m, n) : rg::chunk{0, c.source.count};
      if (cut && to == static_cast<const std::byte*>(c.source_address) + own.first * element) // else undefined
        std::fill_n(static_cast<float*>(const_cast<void*>(c.source_address)), c.source.count,
                    std::numeric_limits<float>::quiet_NaN());
      if (c.kind != RG_OP_REDUCE || c.root == m) std::memcpy(to, all.data() + own.first, own.count * element);
      break;
    }
    case RG_OP_BROADCAST: put(0, sources[c.root], whole(c.root)); break;
    case RG_OP_SCATTER: put(0, sources[c.root], rg::chunk_of(whole(c.root).count, c.counts, m, n)); break;
    case RG_OP_ALL_GATHER:
    case RG_OP_GATHER:
      for (std::uint64_t k = 0; k < n; ++k)
        put(rg::chunk_of(c.target.count, c.counts, k, n).first, sources[k], whole(k));
      break;
    default: // RG_OP_ALL_TO_ALL; a barrier has no target
      for (std::uint64_t k = 0; k < n; ++k) {
        const rg_collective& other = g.joined[k].second;
        const auto from = c.counts ? rg::chunk_of(0, other.counts, m, n) : rg::equal_chunk(other.source.count, m, n);
        put(c.counts ? rg::chunk_of(0, c.target_counts, k, n).first : rg::equal_chunk(c.target.count, k, n).first,
            sources[k], from);
      }
    }
  }
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
    auto& ended = static_cast<rank*>(self)->ended;
    *count = static_cast<std::uint32_t>(std::min<std::size_t>(capacity, ended.size()));
    std::copy_n(ended.begin(), *count, out);
    ended.erase(ended.begin(), ended.begin() + *count);
    return RG_OK;
  };
  t.now = [](void* self) { return static_cast<rank*>(self)->network->now_; };
  if (!collectives) return t;
  static const rg_collectives functions = [] {
    auto c = rg::make_versioned<rg_collectives>();
    c.split = [](void* self, const std::uint32_t* members, std::uint32_t count, std::uint32_t* group) -> rg_status {
      auto& groups = static_cast<rank*>(self)->network->groups_;
      const std::vector<std::uint32_t> wanted(members, members + count);
      auto found = std::ranges::find(groups, wanted);
      *group = static_cast<std::uint32_t>(found - groups.begin());
      if (found == groups.end()) groups.push_back(wanted);
      return RG_OK;
    };
    c.offers = [](void*, std::uint32_t kind, std::uint32_t, std::uint32_t type, std::uint32_t wire) -> std::uint32_t {
      return (!rg::reduces(kind) || type == RG_F32) &&
             (!wire || (type == RG_F32 && (wire == RG_BF16 || wire == RG_F16)));
    };
    c.begin = &virtual_network::begin;
    return c;
  }();
  t.extension = [](void*, const char* id) -> const void* {
    return std::strcmp(id, RG_EXT_COLLECTIVES) == 0 ? &functions : nullptr;
  };
  return t;
}

} // namespace regatta

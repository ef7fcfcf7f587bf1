// SPDX-License-Identifier: Apache-2.0
#include "links.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <regatta/random.hpp>

namespace regatta {
namespace {

std::uint64_t ns_of(std::uint64_t bytes, double bytes_per_ns) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) / bytes_per_ns);
}

} // namespace

links::links(std::vector<std::uint32_t> link_of, const network_options& options, event_queue& events,
             slab<network_message>& all, message_sink& sink)
    : link_of_(std::move(link_of)), options_(options), events_(events), all_(all), sink_(sink),
      hosts_(!options.links.empty()),
      overhead_(options.overhead_ns || options.overhead_ns_per_byte > 0 || options.add_ns_per_byte > 0 ||
                options.bf16_ns_per_byte > 0 || options.fp16_ns_per_byte > 0),
      receives_(
          !options.tiers.empty() ||
          std::ranges::any_of(options.links, [](const network_link& l) { return std::isfinite(l.in_bytes_per_ns); })),
      jitters_(std::ranges::any_of(options.links, [](const network_link& l) { return l.jitter_ns > 0; })),
      send_ns_per_byte_(2 * options.overhead_ns_per_byte * options.send_share),
      receive_ns_per_byte_(2 * options.overhead_ns_per_byte * (1 - options.send_share)),
      inside_(static_cast<std::uint32_t>(options.links.size())) {
  const std::size_t ranks = link_of_.size();
  for (const network_link& l : options_.links) outgoing_.push_back({.bytes_per_ns = l.out_bytes_per_ns});
  const double own = hosts_ ? options_.inside.out_bytes_per_ns : options_.bytes_per_ns;
  for (std::size_t r = 0; r < ranks; ++r) outgoing_.push_back({.bytes_per_ns = own});
  for (const network_link& l : options_.links)
    incoming_.push_back({.ns_per_byte = 1 / l.in_bytes_per_ns, .gap_ns = options_.gap_ns});
  for (const switch_tier& t : options_.tiers) {
    tier_begin_.push_back(static_cast<std::uint32_t>(incoming_.size()));
    groups_.push_back(*std::ranges::max_element(t.group_of) + 1);
    incoming_.resize(incoming_.size() + std::size_t{2} * groups_.back(), {.ns_per_byte = 1 / t.bytes_per_ns});
  }
  if (!overhead_) return;
  processors_.resize(ranks);
  outbox_.resize(ranks, nothing);
}

std::uint64_t links::latency(const network_message& m) const {
  if (is_inside(m)) return options_.inside.latency_ns;
  if (hosts_) return std::max(options_.links[link_of_[m.from]].latency_ns, options_.links[link_of_[m.to]].latency_ns);
  return options_.latency_ns * (options_.uneven ? 1 + (std::min(m.from, m.to) * 3 + std::max(m.from, m.to)) % 5 : 1);
}

// Returns an extra latency after which the message arrives no earlier than those before it on its channel.
std::uint64_t links::jitter(const network_message& m) {
  if (is_inside(m)) return 0;
  const std::uint64_t most =
      std::max(options_.links[link_of_[m.from]].jitter_ns, options_.links[link_of_[m.to]].jitter_ns);
  const double drawn = rg::to_uniform(rg::random_bits(options_.seed, ++delays_)[0]) * static_cast<double>(most);
  if (arrives_.size() <= m.channel) arrives_.resize(m.channel + 1);
  const std::uint64_t without = events_.now() + latency(m);
  std::uint64_t& last = arrives_[m.channel];
  last = std::max(last, without + static_cast<std::uint64_t>(drawn));
  return last - without;
}

// Returns the bytes on which a processor works for a message: those beyond large_from count large_factor times.
std::uint64_t links::work_bytes(const network_message& m) const {
  if (m.bytes <= options_.large_from) return m.bytes;
  return options_.large_from +
         static_cast<std::uint64_t>(static_cast<double>(m.bytes - options_.large_from) * options_.large_factor);
}

// Returns the ns in which a processor converts a message: it reads fp32 and writes a type of half the size, or the other
// way round. If it `adds`, it reads what is there, too, which costs nothing where adding costs nothing.
std::uint64_t links::conversion(const network_message& m, bool adds) const {
  if (!m.converted) return 0;
  const std::uint64_t bytes = m.bytes * (adds && options_.add_ns_per_byte > 0 ? 5 : 3);
  return static_cast<std::uint64_t>(static_cast<double>(bytes) *
                                    (m.converted == 1 ? options_.bf16_ns_per_byte : options_.fp16_ns_per_byte));
}

std::uint64_t links::cost(std::uint64_t messages, std::uint64_t bytes, double ns_per_byte) const {
  return messages * options_.overhead_ns + static_cast<std::uint64_t>(static_cast<double>(bytes) * ns_per_byte);
}

// ------------------------------------------------------------------------------------------------- the sender ---

void links::submit(std::uint32_t m) {
  if (!overhead_) return prepared(m);
  const network_message& x = all_[m];
  std::uint32_t b = outbox_[x.from];
  if (b == nothing || in_turn()) {
    b = batches_.take();
    batches_[b].link = x.from; // a processor
    if (in_turn()) {
      batches_[b].messages.push(all_, m);
      return prepare(b, cost(1, work_bytes(x), send_ns_per_byte_), conversion(x, false));
    }
    outbox_[x.from] = b;
    dirty_outboxes_.push_back(x.from);
  }
  batches_[b].messages.push(all_, m);
  batches_[b].count += 1;
  batches_[b].bytes += work_bytes(x);
  batches_[b].converts += conversion(x, false);
}

// Begins the work of a sender's processor on a batch: `ns`, beside that of conversions. A message can begin to leave
// after o, once it is converted.
void links::prepare(std::uint32_t b, std::uint64_t ns, std::uint64_t converts) {
  batch& x = batches_[b];
  std::uint64_t& until = processors_[x.link].busy_until;
  const std::uint64_t begin = sink_.works(x.link, false, std::max(events_.now(), until), ns + converts);
  until = x.not_before = begin + ns + converts;
  events_.at(begin + options_.overhead_ns + converts / std::max<std::uint64_t>(x.count, 1), batch_prepared, b);
}

// Processors begin in the order of ranks, which is the same on hosts that are alike: they may wait for the same cores.
void links::settle_processors() {
  std::ranges::sort(dirty_outboxes_);
  for (const std::uint32_t rank : dirty_outboxes_) {
    const std::uint32_t b = outbox_[rank];
    outbox_[rank] = nothing;
    prepare(b, cost(batches_[b].count, batches_[b].bytes, send_ns_per_byte_), batches_[b].converts);
  }
  dirty_outboxes_.clear();
}

// Queues a message for its link.
void links::prepared(std::uint32_t m) {
  network_message& x = all_[m];
  const std::uint32_t link = link_from(x);
  outgoing& l = outgoing_[link];
  const std::uint32_t lane = options_.urgent_lanes_first ? x.lane : 0;
  auto q = std::ranges::lower_bound(l.lanes, lane, {}, &lane_queue::lane);
  if (q == l.lanes.end() || q->lane != lane) q = l.lanes.insert(q, {lane, {}});
  if (in_turn()) {
    q->messages.push(all_, m);
    return begin_next(link);
  }
  std::uint32_t b = q->batches.tail;
  // A batch that has begun to leave, and was interrupted, is from before.
  if (q->batches.empty() || batches_[b].submitted != events_.now() || batches_[b].first) {
    b = batches_.take();
    batches_[b].submitted = events_.now();
    batches_[b].link = link;
    q->batches.push(batches_, b);
  }
  batch& to = batches_[b];
  to.messages.push(all_, m);
  to.count += 1;
  to.bytes += x.bytes;
  to.not_before = std::max(to.not_before, x.time);
  if (!l.dirty) dirty_links_.push_back(link);
  l.dirty = true;
}

void links::begin_link(std::uint32_t link) {
  outgoing& l = outgoing_[link];
  const auto q = std::ranges::find_if(l.lanes, [](const lane_queue& x) { return !x.batches.empty(); });
  if (q == l.lanes.end()) return;
  if (l.busy != nothing) {
    if (l.busy_lane <= q->lane) return;
    batch& interrupted = batches_[l.busy];
    interrupted.takes = interrupted.end - events_.now();
    interrupted.end = 0;
    std::ranges::lower_bound(l.lanes, l.busy_lane, {}, &lane_queue::lane)->batches.push_front(batches_, l.busy);
  }
  begin_batch(l, q->lane, q->batches.pop(batches_));
}

void links::begin_next(std::uint32_t link) {
  outgoing& l = outgoing_[link];
  if (l.busy != nothing) return;
  const auto q = std::ranges::find_if(l.lanes, [](const lane_queue& x) { return !x.messages.empty(); });
  if (q == l.lanes.end()) return;
  const std::uint32_t m = q->messages.pop(all_), b = batches_.take();
  batch& x = batches_[b];
  x.messages.push(all_, m);
  x.count = 1;
  x.bytes = all_[m].bytes;
  x.not_before = all_[m].time;
  x.link = link;
  begin_batch(l, q->lane, b);
}

void links::begin_batch(outgoing& l, std::uint32_t lane, std::uint32_t b) {
  const std::uint64_t now = events_.now();
  batch& x = batches_[b];
  l.busy = b;
  l.busy_lane = lane;
  if (!x.first) {
    x.first = now + 1; // 0: has not begun
    x.takes = ns_of(x.bytes, l.bytes_per_ns) + x.count * options_.gap_ns;
  }
  x.end = std::max(now + x.takes, x.not_before);
  events_.at(x.end, batch_left, b);
}

void links::settle_outgoing() {
  settling_.swap(dirty_links_);
  for (const std::uint32_t link : settling_) {
    outgoing_[link].dirty = false;
    begin_link(link);
  }
  settling_.clear();
}

void links::left(std::uint32_t b) {
  batch& x = batches_[b];
  const std::uint32_t link = x.link;
  // An event from before an interruption finds the batch waiting, or with another end.
  if (outgoing_[link].busy != b || x.end != events_.now()) return;
  slab_queue messages = x.messages;
  const std::uint64_t first = x.first - 1;
  batches_.give(b);
  while (!messages.empty()) {
    const std::uint32_t m = messages.pop(all_);
    all_[m].time = first;
    sink_.left(m);
  }
  outgoing_[link].busy = nothing;
  if (in_turn()) return begin_next(link);
  if (!outgoing_[link].dirty) dirty_links_.push_back(link);
  outgoing_[link].dirty = true;
}

void links::travel(std::uint32_t m) {
  const std::uint64_t l = latency(all_[m]) + (jitters_ ? jitter(all_[m]) : 0);
  all_[m].time += l;
  events_.after(l, message_arrives, m);
}

// ----------------------------------------------------------------------------------------------- the receiver ---

// A stage that is busy with earlier messages until `busy_until` needs the time of all bytes since the first one came,
// and has passed the last one no earlier than it came.
void links::pass(incoming& stage, std::uint32_t b, double ns_per_byte, std::uint64_t ns_per_message,
                 std::uint64_t after, network_event kind) {
  batch& x = batches_[b];
  stage.busy_until = std::max(stage.busy_until, x.first) + x.count * ns_per_message +
                     static_cast<std::uint64_t>(static_cast<double>(x.bytes) * ns_per_byte);
  const std::uint64_t end = std::max(events_.now() + after, stage.busy_until);
  if (end > events_.now()) return events_.at(end, kind, b);
  kind == batch_passed ? passed(b) : received(b);
}

void links::add_to(incoming& stage, std::vector<std::uint32_t>& dirty, std::uint32_t number, std::uint32_t m,
                   std::uint64_t bytes) {
  if (stage.open == nothing) {
    stage.open = batches_.take();
    batches_[stage.open].link = number;
    batches_[stage.open].first = UINT64_MAX;
    if (!in_turn()) dirty.push_back(number);
  }
  batch& b = batches_[stage.open];
  b.messages.push(all_, m);
  b.count += 1;
  b.bytes += bytes;
  b.first = std::min(b.first, all_[m].time);
}

// Up from the lowest tier in which sender and receiver are in different groups, down in the reverse order.
std::uint32_t links::stage_of(const network_message& m) const {
  const std::uint32_t tiers = static_cast<std::uint32_t>(tier_begin_.size()), k = m.stage;
  if (k == 2 * tiers) return own_link(m.to);
  if (k > 2 * tiers) return nothing;
  const bool up = k < tiers;
  const std::uint32_t t = up ? k : 2 * tiers - 1 - k;
  const std::vector<std::uint32_t>& group_of = options_.tiers[t].group_of;
  const std::uint32_t from = group_of[link_of_[m.from]], to = group_of[link_of_[m.to]];
  return from == to ? nothing : tier_begin_[t] + (up ? from : groups_[t] + to);
}

void links::receive(std::uint32_t m) {
  network_message& x = all_[m];
  if (!receives_ || is_inside(x)) return process(m);
  while (x.stage <= 2 * tier_begin_.size()) {
    const std::uint32_t link = stage_of(x);
    ++x.stage;
    if (link == nothing) continue;
    add_to(incoming_[link], dirty_incoming_, link, m, x.bytes);
    if (in_turn()) begin_incoming(link);
    return;
  }
  process(m);
}

void links::passed(std::uint32_t b) {
  slab_queue messages = batches_[b].messages;
  batches_.give(b);
  while (!messages.empty()) receive(messages.pop(all_));
}

void links::process(std::uint32_t m) {
  if (!overhead_) return sink_.delivered(m);
  const network_message& x = all_[m];
  incoming& stage = processors_[x.to];
  add_to(stage, dirty_receivers_, x.to, m, work_bytes(x));
  const bool adds = sink_.adds(x);
  batches_[stage.open].converts += conversion(x, adds);
  if (adds && !x.converted)
    batches_[stage.open].takes += static_cast<std::uint64_t>(static_cast<double>(x.bytes) * options_.add_ns_per_byte);
  if (in_turn()) begin_processor(stage);
}

void links::begin_processor(incoming& stage) {
  const std::uint32_t b = std::exchange(stage.open, nothing), rank = batches_[b].link;
  const batch& x = batches_[b];
  const std::uint64_t beside = x.takes + x.converts, ns = beside + cost(x.count, x.bytes, receive_ns_per_byte_);
  stage.busy_until = sink_.works(rank, true, std::max(stage.busy_until, x.first), ns) + beside;
  pass(stage, b, receive_ns_per_byte_, options_.overhead_ns, options_.overhead_ns + x.converts, batch_received);
}

void links::begin_incoming(std::uint32_t link) {
  incoming& stage = incoming_[link];
  pass(stage, std::exchange(stage.open, nothing), stage.ns_per_byte, stage.gap_ns, 0, batch_passed);
}

void links::received(std::uint32_t b) {
  slab_queue messages = batches_[b].messages;
  batches_.give(b);
  while (!messages.empty()) sink_.delivered(messages.pop(all_));
}

void links::settle_incoming() {
  settling_.swap(dirty_incoming_);
  for (const std::uint32_t link : settling_) begin_incoming(link);
  settling_.clear();
  settling_.swap(dirty_receivers_);
  std::ranges::sort(settling_); // as in settle_processors()
  for (const std::uint32_t rank : settling_) begin_processor(processors_[rank]);
  settling_.clear();
}

bool links::end_instant() {
  if (in_turn()) return false;
  if (!dirty_incoming_.empty() || !dirty_receivers_.empty())
    settle_incoming();
  else if (!dirty_outboxes_.empty())
    settle_processors();
  else if (!dirty_links_.empty())
    settle_outgoing();
  else
    return false;
  return true;
}

void links::handle(const event& e) {
  switch (e.kind) {
  case batch_left: return left(e.what);
  case batch_prepared: {
    slab_queue messages = batches_[e.what].messages;
    const std::uint64_t not_before = batches_[e.what].not_before;
    batches_.give(e.what);
    while (!messages.empty()) {
      const std::uint32_t m = messages.pop(all_);
      all_[m].time = not_before;
      prepared(m);
    }
    return;
  }
  case message_arrives: return sink_.arrived(e.what);
  case batch_passed: return passed(e.what);
  case batch_received: return received(e.what);
  default: return;
  }
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfers.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <regatta/clock.hpp>
#include <regatta/ext/collectives.h>
#include <regatta/operation_names.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

bool overlap(const rg_buffer& a, const rg_buffer& b) {
  return a.region == b.region && a.offset < b.offset + bytes_of(b) && b.offset < a.offset + bytes_of(a);
}

// A cookie for the transport is the operation's index in operations_; the upper 32 bits count the uses of that index. A
// cookie that comes back twice or was never issued thus differs from that of a pending operation, without following a
// pointer.
constexpr std::uint64_t one_use = std::uint64_t{1} << 32;

} // namespace

transfers::transfers(const rg_transport& functions, void* self, const rg_transport_caps& caps, plugin_host& host,
                     std::string name, region_table& regions, staging& on_host, staging* on_device, std::uint32_t rank,
                     std::uint32_t size, std::uint32_t lanes, trace_recorder* trace)
    : functions_(functions), self_(self), regions_(regions), on_host_(on_host), on_device_(on_device), trace_(trace),
      rank_(rank), lanes_(lanes), adds_(caps.flags & RG_CAP_ADD), converts_(caps.flags & RG_CAP_CONVERT),
      virtual_(functions.now && caps.flags & RG_CAP_VIRTUAL),
      ordered_(caps.flags & RG_CAP_ORDERED_RECEIVES || caps.p2p == RG_P2P_ORDERED), host_(host), name_(std::move(name)),
      self_sends_(lanes), self_receives_(lanes), sequences_(trace ? std::size_t{size} * lanes * 2 : 0) {}

transfers::~transfers() {
  for (const auto& e : extras_)
    if (e->region) regions_.remove(e->region);
}

transfers::operation* transfers::new_operation(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane,
                                               const rg_buffer& buffer, tally* own) {
  if (free_ == none) {
    if (operation_count_ % block == 0) operations_.push_back(std::make_unique<std::array<operation, block>>());
    operation& made = operation_at(operation_count_);
    made.index = operation_count_++;
    made.behind = std::exchange(free_, made.index);
  }
  operation* const o = &operation_at(free_);
  free_ = o->behind;
  o->target = buffer;
  o->more = nullptr;
  ++o->uses;
  o->peer = peer;
  o->lane = static_cast<std::uint16_t>(lane);
  o->wire = 0;
  o->how = peer == rank_ ? path::self : path::transport;
  o->on_device = regions_.on_device(buffer);
  o->receive = o->add = o->collective = o->arrived = o->posted = false;
  o->pending = true;
  if ((o->engines = own))
    (o->own = own)->pending += 1;
  else
    o->cookie = cookie;
  ++outstanding_;
  return o;
}

transfers::extra& transfers::more_of(operation* o) {
  if (o->more) return *o->more;
  std::vector<extra*>& free = free_extras_[o->on_device];
  if (free.empty()) {
    extras_.push_back(std::make_unique<extra>());
    extras_.back()->on_device = o->on_device;
    free.push_back(extras_.back().get());
  }
  o->more = free.back();
  free.pop_back();
  o->more->source = nullptr;
  o->more->bytes = 0;
  o->more->fence = o->more->busy = 0;
  return *o->more;
}

void* transfers::address_of(const operation& o) const {
  return o.target.region ? regions_.address(o.target) : nullptr; // a barrier has no buffer
}

rg_buffer transfers::buffer_of(const operation& o) const {
  rg_buffer b = o.target;
  if (!o.more || o.how != path::scratch) return b;
  if (o.wire) b.type = o.wire;
  b.region = o.more->region;
  b.offset = 0;
  return b;
}

// The transport sees scratch memory, in the wire type.
void transfers::through_scratch(operation* o) {
  o->how = path::scratch;
  extra& scratch = more_of(o);
  const std::uint64_t bytes = std::max<std::uint64_t>(bytes_of(buffer_of(*o)), 64);
  if (scratch.memory_bytes >= bytes) return;
  if (scratch.region) regions_.remove(std::exchange(scratch.region, 0));
  scratch.memory_bytes = 0; // the next lines may throw
  scratch.memory = nullptr;
  if (!regions_.ghosts()) scratch.memory = stage_of(*o).allocate_scratch(bytes);
  scratch.region = regions_.add(scratch.memory.get(), bytes, stage_of(*o).scratch_place());
  scratch.memory_bytes = bytes;
}

void transfers::send(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer,
                     std::uint32_t wire, tally* own) {
  operation* o = new_operation(cookie, peer, lane, buffer, own);
  o->wire = wire & 15; // 0, RG_F16 or RG_BF16 (strategy_host::transfer)
  if (trace_) begin_trace(o);
  if (o->how == path::self) {
    more_of(o);
    self_sends_[lane].push(o);
    match_self(lane);
    return;
  }
  if (stage_of(*o).always_copies() || (wire && !converts_)) {
    through_scratch(o);
    if (!regions_.ghosts()) pack(o);
  }
  post(o);
}

void transfers::recv(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer, bool add,
                     std::uint32_t wire, tally* own) {
  operation* o = new_operation(cookie, peer, lane, buffer, own);
  o->receive = true;
  o->add = add;
  o->wire = wire & 15; // 0, RG_F16 or RG_BF16 (strategy_host::transfer)
  if (trace_) begin_trace(o);
  if (o->how == path::transport &&
      (stage_of(*o).always_copies() || (wire && !converts_) || (add && !(adds_ && buffer.type == RG_F32))))
    through_scratch(o);
  append_receive(o);
  if (o->how != path::transport) ++local_;
  if (o->how == path::self) {
    more_of(o);
    self_receives_[lane].push(o);
    match_self(lane);
  } else {
    post(o);
  }
}

void transfers::collective(const rg_op_collective& what, collective_function function, const rg_buffer* source,
                           const rg_buffer* target) {
  const rg_buffer empty{}, &from = source ? *source : empty, &to = target ? *target : empty;
  operation* o = new_operation(what.op.cookie, rank_, 0, bytes_of(from) > bytes_of(to) ? from : target ? to : from);
  o->how = path::transport;
  o->collective = true;
  more_of(o).function = function;
  if (!o->more->joint) {
    o->more->joint = std::make_unique<rg_collective>();
    o->more->joint->struct_size = sizeof(rg_collective);
  }
  rg_collective& joint = *o->more->joint;
  joint.kind = what.op.kind;
  joint.group = what.group;
  joint.root = what.root;
  joint.reduction = what.reduction;
  joint.wire = what.wire;
  joint.source = from;
  joint.target = to;
  joint.source_address = source ? regions_.address(from) : nullptr;
  joint.target_address = target ? regions_.address(to) : nullptr;
  joint.counts = what.counts;
  joint.target_counts = what.target_counts;
  joint.cookie = cookie_of(*o);
  if (trace_) begin_trace(o);
  post(o);
}

// The strategy's clock: that of the transport if it is virtual.
std::uint64_t transfers::now() const {
  return virtual_ ? functions_.now(self_) : rg::now_ns();
}

// Also while nothing is recorded: sequence numbers of both ranks must agree, and a receive that is posted before the
// traced steps may end in them.
void transfers::begin_trace(operation* o) {
  std::unique_ptr<trace_event>& traced = more_of(o).traced;
  if (!traced) traced = std::make_unique<trace_event>();
  trace_event& e = *traced;
  e = {};
  e.bucket = std::exchange(bucket_, no_bucket);
  if (!o->collective) {
    e.kind = o->receive ? event_kind::receive : event_kind::send;
    e.sequence = sequences_[(o->peer * lanes_ + o->lane) * 2 + o->receive]++;
  }
  e.begin = now();
}

void transfers::end_trace(const operation& o, std::uint64_t bytes) const {
  if (!o.more || !trace_->on()) return;
  trace_event e = *o.more->traced;
  const std::uint64_t time = now();
  if (e.end < e.begin || e.end > time) e.end = time; // 0: the transport did not say when it ended
  e.origin = event_origin::messages;
  e.number = o.receive ? bytes : bytes_of(o.target);
  e.peer = o.peer;
  e.lane = o.lane;
  trace_->add(e,
              o.collective ? rg::operation_name(o.more->joint->kind)
              : o.receive  ? "receive"
                           : "send",
              "message", "bytes");
}

// Posts the operation at once, or queues it behind earlier operations of the same queue.
void transfers::post(operation* o) {
  if ((!waiting_ || line_of(o).empty()) && try_post(o)) return;
  line_of(o).push(o);
  ++waiting_;
}

transfers::fifo& transfers::line_of(const operation* o) {
  const std::uint64_t number = line_number(o);
  const auto at = std::ranges::lower_bound(lines_, number, {}, &line::number);
  if (at != lines_.end() && at->number == number) return at->waiting;
  return lines_.insert(at, {number, {}})->waiting;
}

void transfers::append_receive(operation* o) {
  o->before = last_receive_;
  o->behind = none;
  (last_receive_ == none ? first_receive_ : operation_at(last_receive_).behind) = o->index;
  last_receive_ = o->index;
}

void transfers::remove_receive(operation* o) {
  (o->before == none ? first_receive_ : operation_at(o->before).behind) = o->behind;
  (o->behind == none ? last_receive_ : operation_at(o->behind).before) = o->before;
}

bool transfers::try_post(operation* o) {
  // A transport that orders its own receives does not know of those that are copied to their target here.
  if (o->receive && o->how == path::transport && (local_ || !ordered_) && waits_for_earlier(o, ordered_)) return false;
  staging& stage = stage_of(*o);
  if (o->more && o->more->busy && !stage.passed(o->more->busy)) return false;
  rg_status s;
  if (o->more && o->collective) {
    o->more->joint->after = stage.fence_for_transport();
    s = o->more->function(self_, o->more->joint.get());
  } else {
    const bool scratch = o->more && o->how == path::scratch;
    rg_transfer t{};
    t.struct_size = sizeof t;
    // A virtual transport counts the time in which the engine adds and converts.
    const bool told = !scratch || (virtual_ && !stage.always_copies());
    t.flags = o->add && told ? RG_TRANSFER_ADD : 0;
    t.peer = o->peer;
    t.lane = o->lane;
    t.buffer = buffer_of(*o);
    t.bytes = bytes_of(t.buffer);
    t.address = scratch ? o->more->memory.get() : address_of(*o);
    t.after = stage.fence_for_transport();
    t.cookie = cookie_of(*o);
    t.wire = told ? o->wire : 0;
    s = o->receive ? functions_.recv(self_, &t) : functions_.send(self_, &t);
  }
  if (s == RG_OK) {
    o->posted = true;
    if (!o->receive) given_bytes_ += bytes_of(o->target);
    return true;
  }
  if (s == RG_AGAIN) return false;
  if (s == RG_E_PEER || s == RG_E_CANCELLED) {
    end(o, {.status = s});
    return true;
  }
  check(s, host_, fmt::format("{}: {}", name_, describe(*o)));
  throw failure(exit_code::plugin, fmt::format("{}: {} begins with status {}: expected RG_OK, RG_AGAIN or an error",
                                               name_, describe(*o), s));
}

void transfers::post_waiting() {
  if (!waiting_) return;
  for (line& l : lines_)
    while (!l.waiting.empty() && try_post(l.waiting.front())) {
      l.waiting.pop();
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
    if (s->on_device != r->on_device)
      throw failure(exit_code::plugin,
                    "the strategy sends to its own rank from a device's memory to the host's, or back");
    r->more->source = s;
    r->more->bytes = bytes_of(s->target);
    r->arrived = true;
    ++arrived_;
  }
}

bool transfers::waits_for_earlier(const operation* o, bool only_local) const {
  for (const operation* e = receive_at(first_receive_); e && e != o; e = receive_at(e->behind))
    if ((!only_local || e->how != path::transport) && overlap(e->target, o->target)) return true;
  return false;
}

void transfers::pack(operation* o) {
  auto w = rg::make_versioned<rg_work>();
  w.kind = o->wire ? RG_OP_CONVERT : RG_OP_COPY;
  w.target = o->more->memory.get();
  w.type = o->wire ? std::uint32_t{o->wire} : o->target.type;
  w.source = address_of(*o);
  w.source_type = o->target.type;
  w.count = o->target.count;
  o->more->busy = stage_of(*o).pack(w);
}

// Copies a received message to its target. Ghosts have no addresses and need no copy.
rg_fence transfers::copy_to_target(const operation& o) {
  const extra& e = *o.more;
  auto w = rg::make_versioned<rg_work>();
  w.target = address_of(o);
  w.source = e.source ? address_of(*e.source) : e.memory.get();
  if (!w.target || !w.source || !e.bytes) return 0;
  w.kind = o.wire ? RG_OP_CONVERT : o.add ? RG_OP_AXPY : RG_OP_COPY;
  w.flags = o.add ? std::uint32_t{RG_OP_ADD} : 0;
  w.type = w.kind == RG_OP_COPY ? std::uint32_t{RG_U8} : o.target.type; // any number of bytes
  w.source_type = o.wire && !e.source ? o.wire : w.type;
  w.round_to = o.wire;
  w.count = e.bytes / (w.kind == RG_OP_COPY ? 1 : w.type == RG_F64 ? sizeof(double) : sizeof(float));
  w.factor = 1;
  const rg_fence busy = stage_of(o).unpack(w);
  return e.source ? 0 : busy;
}

// Copies messages that have arrived to their targets, unless they must wait for an earlier receive.
void transfers::complete_local() {
  if (!arrived_) return;
  for (operation *o = receive_at(first_receive_), *next = nullptr; o && arrived_; o = next) {
    next = receive_at(o->behind);
    if (!o->arrived || waits_for_earlier(o, false)) continue;
    --arrived_;
    const rg_fence busy = copy_to_target(*o);
    if (o->more->source) end(o->more->source, {});
    end(o, {.bytes = o->more->bytes, .fence = o->more->fence}, busy); // removes it from the pending receives
  }
}

std::string transfers::describe(const operation& o) {
  if (o.collective)
    return fmt::format("a collective of {} bytes{}", bytes_of(o.target),
                       o.more ? fmt::format(" in group {}", o.more->joint->group) : "");
  return fmt::format("a {} of {} bytes {} rank {} on lane {}", o.receive ? "receive" : "send", bytes_of(o.target),
                     o.receive ? "from" : "to", o.peer, o.lane);
}

// Returns the operation of a completion. Throws failure (plugin) for an invalid completion.
transfers::operation* transfers::operation_of(const rg_completion& c) const {
  const auto index = static_cast<std::uint32_t>(c.cookie);
  operation* const o = index < operation_count_ ? &operation_at(index) : nullptr;
  const bool latest = o && c.cookie == cookie_of(*o);
  const char* const wrong =
      latest && !o->posted ? "poll() reports a completion twice, or of an operation that was refused"
      : !latest && o && c.cookie >= one_use && c.cookie < cookie_of(*o) ? "poll() reports a completion twice"
      : !latest          ? "poll() reports a completion whose cookie was never given"
      : c.status > RG_OK ? "an operation ends with a status that is neither RG_OK nor an error"
      : o->receive && c.bytes > bytes_of(buffer_of(*o)) ? "a receive ends with more bytes than it has room for"
                                                        : nullptr;
  if (wrong)
    throw failure(exit_code::plugin, fmt::format("{}: {} (cookie {:#x}, status {}, {} bytes{})", name_, wrong, c.cookie,
                                                 c.status, c.bytes, latest ? "; " + describe(*o) : ""));
  o->posted = false;
  return o;
}

void transfers::require_success() const {
  if (first_error_ != RG_OK) check(first_error_, host_, fmt::format("{}: {}", name_, failed_));
}

void transfers::end(operation* o, const rg_completion& how, rg_fence busy) {
  if (how.status != RG_OK && first_error_ == RG_OK) {
    first_error_ = how.status;
    failed_ = describe(*o);
    if (how.vendor_error) failed_ += fmt::format(" (error {} of its library)", how.vendor_error);
  }
  if (trace_) end_trace(*o, how.bytes);
  if (o->engines) {
    --o->own->pending;
    o->own->received += o->receive ? how.bytes : 0;
  } else {
    rg_completion c{};
    c.cookie = o->cookie;
    c.status = how.status;
    c.bytes = how.bytes;
    c.fence = how.fence;
    ended_.push_back(c);
  }
  if (o->receive) {
    remove_receive(o);
    if (o->how != path::transport) --local_;
  }
  if (extra* const more = std::exchange(o->more, nullptr)) {
    more->busy = busy;
    (busy ? emptying_ : free_extras_[more->on_device]).push_back(more);
  }
  o->pending = false;
  o->behind = std::exchange(free_, o->index);
  --outstanding_;
}

std::vector<transfers::open_operation> transfers::open() const {
  std::vector<const operation*> all;
  for (const operation* o = receive_at(first_receive_); o; o = receive_at(o->behind)) all.push_back(o);
  for (std::uint32_t i = 0; i < operation_count_; ++i)
    if (const operation& o = operation_at(i); o.pending && !o.receive) all.push_back(&o);
  std::vector<open_operation> out;
  for (const operation* o : all) {
    const bool refused = std::ranges::any_of(lines_, [&](const line& l) {
      const fifo& f = l.waiting;
      return std::find(f.items.begin() + static_cast<std::ptrdiff_t>(f.head), f.items.end(), o) != f.items.end();
    });
    const std::uint64_t bytes = bytes_of(o->target);
    out.push_back({o->collective ? "collective operation"
                   : o->receive  ? "receive"
                                 : "send",
                   o->collective ? UINT32_MAX : o->peer, o->lane, bytes, o->receive, refused});
  }
  return out;
}

void transfers::free_emptied() {
  std::erase_if(emptying_, [&](extra* e) {
    if (!stage(e->on_device).passed(e->busy)) return false;
    free_extras_[e->on_device].push_back(e);
    return true;
  });
}

void transfers::poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::vector<rg_completion>& out) {
  if (!emptying_.empty()) free_emptied();
  complete_local();
  post_waiting();
  if (!ended_.empty()) timeout_ns = 0;
  // A transport may have room for a refused operation again without a completion.
  constexpr std::uint64_t retry_ns = 1'000'000;
  if (waiting_) timeout_ns = std::min(timeout_ns, retry_ns);
  std::array<rg_completion, 64> completions;
  std::uint32_t count = 0;
  const rg_status polled = functions_.poll(self_, timeout_ns, spin_ns, completions.data(), completions.size(), &count);
  if (polled < 0) check(polled, host_, name_);
  if (count > completions.size())
    throw failure(exit_code::plugin, fmt::format("{}: poll() reports {} completions where there is room for {}", name_,
                                                 count, completions.size()));
  for (std::uint32_t i = 0; i < count; ++i) {
    rg_completion& c = completions[i];
    operation* const o = operation_of(c);
    if (o->wire && o->how == path::scratch) c.bytes *= sizeof(float) / sizeof(std::uint16_t); // those in memory
    if (c.fence) stage_of(*o).wait_for(c.fence);
    if (o->receive && o->how == path::scratch && c.status == RG_OK) {
      o->more->bytes = c.bytes;
      o->more->fence = c.fence;
      o->arrived = true;
      ++arrived_;
      continue;
    }
    if (trace_) o->more->traced->end = virtual_ ? 0 : c.time_ns;
    end(o, c);
  }
  complete_local();
  if (count) post_waiting();
  out.insert(out.end(), ended_.begin(), ended_.end());
  ended_.clear();
}

} // namespace regatta

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
constexpr std::uint64_t one_use = std::uint64_t{1} << 32, index_mask = one_use - 1;

} // namespace

transfers::transfers(const rg_transport& functions, void* self, const rg_transport_caps& caps, plugin_host& host,
                     std::string name, region_table& regions, staging& on_host, staging* on_device, std::uint32_t rank,
                     std::uint32_t size, std::uint32_t lanes, trace_recorder* trace)
    : functions_(functions), self_(self), adds_(caps.flags & RG_CAP_ADD), converts_(caps.flags & RG_CAP_CONVERT),
      virtual_(functions.now && caps.flags & RG_CAP_VIRTUAL),
      ordered_(caps.flags & RG_CAP_ORDERED_RECEIVES || caps.p2p == RG_P2P_ORDERED), host_(host), name_(std::move(name)),
      regions_(regions), on_host_(on_host), on_device_(on_device), rank_(rank), lanes_(lanes), self_sends_(lanes),
      self_receives_(lanes), trace_(trace), sequences_(trace ? std::size_t{size} * lanes * 2 : 0) {}

transfers::~transfers() {
  for (std::size_t i = 0; i < operation_count_; ++i)
    if (const auto& scratch = operation_at(i).scratch; scratch && scratch->region) regions_.remove(scratch->region);
}

transfers::operation* transfers::new_operation(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane,
                                               const rg_buffer& buffer, tally* own) {
  staging* const stage = regions_.on_device(buffer) ? on_device_ : &on_host_;
  auto& free = free_of(stage);
  if (free.empty()) {
    if (operation_count_ % block == 0) operations_.push_back(std::make_unique<std::array<operation, block>>());
    operation& made = operation_at(operation_count_);
    made.stage = stage;
    made.transfer.struct_size = sizeof(rg_transfer);
    made.transfer.cookie = operation_count_++;
    for (std::vector<operation*>* list : {&free, &emptying_})
      if (list->capacity() < operation_count_) list->reserve(2 * operation_count_);
    free.push_back(&made);
  }
  operation* o = free.back();
  free.pop_back();
  o->cookie = cookie;
  o->bytes = 0;
  o->function = nullptr;
  o->target = buffer;
  o->target_address = buffer.region ? regions_.address(buffer) : nullptr; // a barrier has no buffer
  o->transfer.flags = 0;
  o->transfer.peer = peer;
  o->transfer.lane = lane;
  o->transfer.buffer = buffer;
  o->transfer.bytes = bytes_of(buffer);
  o->transfer.address = o->target_address;
  o->transfer.cookie += one_use;
  o->transfer.wire = 0;
  if ((o->own = own)) ++own->pending;
  o->source = nullptr;
  o->how = peer == rank_ ? path::self : path::transport;
  o->wire = 0;
  o->receive = o->add = o->arrived = o->posted = false;
  o->fence = o->busy = 0;
  ++outstanding_;
  return o;
}

// The transport sees scratch memory, in the wire type.
void transfers::through_scratch(operation* o) {
  o->how = path::scratch;
  if (o->wire) o->transfer.buffer.type = o->wire;
  o->transfer.bytes = bytes_of(o->transfer.buffer);
  const std::uint64_t bytes = std::max<std::uint64_t>(o->transfer.bytes, 64);
  if (!o->scratch) o->scratch = std::make_unique<scratch_of_operation>();
  scratch_of_operation& scratch = *o->scratch;
  if (scratch.bytes < bytes) {
    if (scratch.region) regions_.remove(std::exchange(scratch.region, 0));
    scratch.bytes = 0; // the next lines may throw
    scratch.memory = nullptr;
    if (!regions_.ghosts()) scratch.memory = o->stage->allocate_scratch(bytes);
    scratch.region = regions_.add(scratch.memory.get(), bytes, o->stage->scratch_place());
    scratch.bytes = bytes;
  }
  o->transfer.buffer.region = scratch.region;
  o->transfer.buffer.offset = 0;
  o->transfer.address = scratch.memory.get();
}

void transfers::send(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer,
                     std::uint32_t wire, tally* own) {
  operation* o = new_operation(cookie, peer, lane, buffer, own);
  o->wire = wire;
  if (trace_) begin_trace(o);
  if (o->how == path::self) {
    self_sends_[lane].push(o);
    match_self(lane);
    return;
  }
  if (o->stage->always_copies() || (wire && !converts_)) {
    through_scratch(o);
    if (!regions_.ghosts()) pack(o);
  } else {
    o->transfer.wire = wire;
  }
  post(o);
}

void transfers::recv(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer, bool add,
                     std::uint32_t wire, tally* own) {
  operation* o = new_operation(cookie, peer, lane, buffer, own);
  o->receive = true;
  o->add = add;
  o->wire = wire;
  if (trace_) begin_trace(o);
  if (o->how == path::transport) {
    if (o->stage->always_copies() || (wire && !converts_) || (add && !(adds_ && buffer.type == RG_F32))) {
      through_scratch(o);
    } else {
      o->transfer.flags = add ? RG_TRANSFER_ADD : 0;
      o->transfer.wire = wire;
    }
  }
  append_receive(o);
  if (o->how != path::transport) ++local_;
  if (o->how == path::self) {
    self_receives_[lane].push(o);
    match_self(lane);
  } else {
    post(o);
  }
}

void transfers::collective(const rg_op_collective& what, collective_function function, const rg_buffer* source,
                           const rg_buffer* target) {
  const rg_buffer none{}, &from = source ? *source : none, &to = target ? *target : none;
  operation* o = new_operation(what.op.cookie, rank_, 0, bytes_of(from) > bytes_of(to) ? from : target ? to : from);
  o->how = path::transport;
  o->function = function;
  if (!o->joint) {
    o->joint = std::make_unique<rg_collective>();
    o->joint->struct_size = sizeof(rg_collective);
  }
  rg_collective& joint = *o->joint;
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
  joint.cookie = o->transfer.cookie;
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
  if (!o->traced) o->traced = std::make_unique<trace_event>();
  trace_event& e = *o->traced;
  e = {};
  e.bucket = std::exchange(bucket_, no_bucket);
  if (!o->function) {
    e.kind = o->receive ? event_kind::receive : event_kind::send;
    e.sequence = sequences_[(o->transfer.peer * lanes_ + o->transfer.lane) * 2 + o->receive]++;
  }
  e.begin = now();
}

void transfers::end_trace(const operation& o) const {
  if (!trace_->on()) return;
  trace_event e = *o.traced;
  const std::uint64_t time = now();
  if (e.end < e.begin || e.end > time) e.end = time; // 0: the transport did not say when it ended
  e.origin = event_origin::messages;
  e.number = o.receive ? o.bytes : bytes_of(o.target);
  e.peer = o.transfer.peer;
  e.lane = o.transfer.lane;
  trace_->add(e, o.function ? rg::operation_name(o.joint->kind) : o.receive ? "receive" : "send", "message", "bytes");
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
  o->behind = nullptr;
  (last_receive_ ? last_receive_->behind : first_receive_) = o;
  last_receive_ = o;
}

void transfers::remove_receive(operation* o) {
  (o->before ? o->before->behind : first_receive_) = o->behind;
  (o->behind ? o->behind->before : last_receive_) = o->before;
}

bool transfers::try_post(operation* o) {
  // A transport that orders its own receives does not know of those that are copied to their target here.
  if (o->receive && o->how == path::transport && (local_ || !ordered_) && waits_for_earlier(o, ordered_)) return false;
  if (o->busy && !o->stage->passed(o->busy)) return false;
  o->busy = 0;
  (o->function ? o->joint->after : o->transfer.after) = o->stage->fence_for_transport();
  const rg_status s = o->function  ? o->function(self_, o->joint.get())
                      : o->receive ? functions_.recv(self_, &o->transfer)
                                   : functions_.send(self_, &o->transfer);
  if (s == RG_OK) {
    o->posted = true;
    if (!o->receive) given_bytes_ += bytes_of(o->target);
    return true;
  }
  if (s == RG_AGAIN) return false;
  if (s == RG_E_PEER || s == RG_E_CANCELLED) {
    end(o, s);
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
    if (s->stage != r->stage)
      throw failure(exit_code::plugin,
                    "the strategy sends to its own rank from a device's memory to the host's, or back");
    r->source = s;
    r->bytes = bytes_of(s->target);
    r->arrived = true;
    ++arrived_;
  }
}

bool transfers::waits_for_earlier(const operation* o, bool only_local) const {
  for (const operation* e = first_receive_; e && e != o; e = e->behind)
    if ((!only_local || e->how != path::transport) && overlap(e->target, o->target)) return true;
  return false;
}

void transfers::pack(operation* o) {
  auto w = rg::make_versioned<rg_work>();
  w.kind = o->wire ? RG_OP_CONVERT : RG_OP_COPY;
  w.target = o->transfer.address;
  w.type = o->transfer.buffer.type;
  w.source = o->target_address;
  w.source_type = o->target.type;
  w.count = o->target.count;
  o->busy = o->stage->pack(w);
}

// Copies a received message to its target. Ghosts have no addresses and need no copy.
rg_fence transfers::copy_to_target(const operation& o) {
  const bool from_self = o.source;
  auto w = rg::make_versioned<rg_work>();
  w.target = o.target_address;
  w.source = from_self ? o.source->target_address : o.scratch->memory.get();
  if (!w.target || !w.source || !o.bytes) return 0;
  w.kind = o.wire ? RG_OP_CONVERT : o.add ? RG_OP_AXPY : RG_OP_COPY;
  w.flags = o.add ? std::uint32_t{RG_OP_ADD} : 0;
  w.type = w.kind == RG_OP_COPY ? std::uint32_t{RG_U8} : o.target.type; // any number of bytes
  w.source_type = o.wire && !from_self ? o.wire : w.type;
  w.round_to = o.wire;
  w.count = o.bytes / (w.kind == RG_OP_COPY ? 1 : w.type == RG_F64 ? sizeof(double) : sizeof(float));
  w.factor = 1;
  const rg_fence busy = o.stage->unpack(w);
  return from_self ? 0 : busy;
}

// Copies messages that have arrived to their targets, unless they must wait for an earlier receive.
void transfers::complete_local() {
  if (!arrived_) return;
  for (operation *o = first_receive_, *next = nullptr; o && arrived_; o = next) {
    next = o->behind;
    if (!o->arrived || waits_for_earlier(o, false)) continue;
    --arrived_;
    const rg_fence busy = copy_to_target(*o);
    if (o->source) end(o->source, RG_OK);
    end(o, RG_OK, busy); // removes it from the pending receives
  }
}

std::string transfers::describe(const operation& o) {
  if (o.function) return fmt::format("a collective of {} bytes in group {}", bytes_of(o.target), o.joint->group);
  return fmt::format("a {} of {} bytes {} rank {} on lane {}", o.receive ? "receive" : "send", bytes_of(o.target),
                     o.receive ? "from" : "to", o.transfer.peer, o.transfer.lane);
}

// Returns the operation of a completion. Throws failure (plugin) for an invalid completion.
transfers::operation* transfers::operation_of(const rg_completion& c) const {
  const std::uint64_t index = c.cookie & index_mask;
  operation* const o = index < operation_count_ ? &operation_at(index) : nullptr;
  const bool latest = o && c.cookie == o->transfer.cookie;
  const char* const wrong =
      latest && !o->posted ? "poll() reports a completion twice, or of an operation that was refused"
      : !latest && o && c.cookie >= one_use && c.cookie < o->transfer.cookie ? "poll() reports a completion twice"
      : !latest                                   ? "poll() reports a completion whose cookie was never given"
      : c.status > RG_OK                          ? "an operation ends with a status that is neither RG_OK nor an error"
      : o->receive && c.bytes > o->transfer.bytes ? "a receive ends with more bytes than it has room for"
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

void transfers::end(operation* o, rg_status status, rg_fence busy, std::int32_t vendor_error) {
  if (status != RG_OK && first_error_ == RG_OK) {
    first_error_ = status;
    failed_ = describe(*o);
    if (vendor_error) failed_ += fmt::format(" (error {} of its library)", vendor_error);
  }
  if (trace_) end_trace(*o);
  if (o->own) {
    --o->own->pending;
    o->own->received += o->receive ? o->bytes : 0;
  } else {
    rg_completion c{};
    c.cookie = o->cookie;
    c.status = status;
    c.bytes = o->bytes;
    c.fence = o->fence;
    ended_.push_back(c);
  }
  if (o->receive) {
    remove_receive(o);
    if (o->how != path::transport) --local_;
  }
  o->busy = busy;
  (busy ? emptying_ : free_of(o->stage)).push_back(o);
  --outstanding_;
}

std::vector<transfers::open_operation> transfers::open() const {
  std::vector<const operation*> all;
  for (const operation* o = first_receive_; o; o = o->behind) all.push_back(o);
  const auto has = [](const std::vector<operation*>& some, const operation* o) {
    return std::find(some.begin(), some.end(), o) != some.end();
  };
  for (std::size_t i = 0; i < operation_count_; ++i)
    if (const operation& o = operation_at(i);
        !o.receive && !has(free_[0], &o) && !has(free_[1], &o) && !has(emptying_, &o))
      all.push_back(&o);
  std::vector<open_operation> out;
  for (const operation* o : all) {
    const bool refused = std::ranges::any_of(lines_, [&](const line& l) {
      const fifo& f = l.waiting;
      return std::find(f.items.begin() + static_cast<std::ptrdiff_t>(f.head), f.items.end(), o) != f.items.end();
    });
    const std::uint64_t bytes = bytes_of(o->target);
    out.push_back({o->function  ? "collective operation"
                   : o->receive ? "receive"
                                : "send",
                   o->function ? UINT32_MAX : o->transfer.peer, o->transfer.lane, bytes, o->receive, refused});
  }
  return out;
}

void transfers::free_emptied() {
  std::erase_if(emptying_, [&](operation* o) {
    if (!o->stage->passed(o->busy)) return false;
    free_of(o->stage).push_back(o);
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
  check(functions_.poll(self_, timeout_ns, spin_ns, completions.data(), completions.size(), &count), host_, name_);
  if (count > completions.size())
    throw failure(exit_code::plugin, fmt::format("{}: poll() reports {} completions where there is room for {}", name_,
                                                 count, completions.size()));
  for (std::uint32_t i = 0; i < count; ++i) {
    operation* const o = operation_of(completions[i]);
    o->bytes = completions[i].bytes; // bytes in the type of memory, not of the wire
    if (o->wire && o->how == path::scratch) o->bytes *= sizeof(float) / sizeof(std::uint16_t);
    o->fence = completions[i].fence;
    if (o->fence) o->stage->wait_for(o->fence);
    if (o->receive && o->how == path::scratch && completions[i].status == RG_OK) {
      o->arrived = true;
      ++arrived_;
      continue;
    }
    if (trace_) o->traced->end = virtual_ ? 0 : completions[i].time_ns;
    end(o, completions[i].status, 0, completions[i].vendor_error);
  }
  complete_local();
  if (count) post_waiting();
  out.insert(out.end(), ended_.begin(), ended_.end());
  ended_.clear();
}

} // namespace regatta

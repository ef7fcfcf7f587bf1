// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic operations of a strategy, computed where their buffers are. The host computes at once. A device computes
// after all work enqueued before, without the host waiting. Under a virtual clock an operation takes the time that one
// core would need, with ghosts too.
#include "runtime/strategy_host.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <regatta/plugin.hpp>

namespace regatta {
namespace {

std::uint64_t bytes_of(const rg_buffer& b) {
  return b.count * rg::size_of(b.type);
}

bool is_half(std::uint32_t type) {
  return type == RG_F16 || type == RG_BF16;
}

constexpr const char* too_many_selected = "select: more elements than the buffers hold";

} // namespace

// Time that a simulated rank needs to access `bytes`: 10 GB/s is one core's part of a server's memory bandwidth.
std::uint64_t exchange::virtual_ns(std::uint64_t bytes) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * 0.1);
}

processor& exchange::unit_of(const rg_buffer& b) {
  return regions_.on_device(b) ? unit_ : host_processor_;
}

bool exchange::in_one_memory(const rg_op& op) const {
  bool host = false, device = false;
  for (const rg_buffer* b : {&op.target, &op.source, &op.index})
    if (b->region) (regions_.on_device(*b) ? device : host) = true;
  return !(host && device);
}

rg_status exchange::arithmetic(const rg_op& op) {
  const bool reads = op.kind == RG_OP_COPY || op.kind == RG_OP_AXPY || op.kind == RG_OP_ACCUMULATE;
  const bool indexed = (op.kind == RG_OP_FILL || op.kind == RG_OP_AXPY) && op.index.region != 0;
  if (!regions_.contains(op.target) || (reads && !regions_.contains(op.source)) ||
      (indexed && !regions_.contains(op.index)))
    return refuse("arithmetic names memory outside its region");
  if (op.kind != RG_OP_COPY && op.target.type != RG_F32) return refuse("arithmetic is on RG_F32");
  if (indexed && op.index.type != RG_I32) return refuse("the index of arithmetic is RG_I32");
  const std::uint64_t count = indexed ? op.index.count : op.target.count;
  if (reads && (op.source.count != count || op.source.type != op.target.type))
    return refuse("arithmetic on buffers of different length or type");
  if (op.kind == RG_OP_ACCUMULATE &&
      (!regions_.contains(op.index) || op.index.type != RG_F32 || op.index.count != count))
    return refuse("accumulate: three buffers of RG_F32 and one length");
  const std::uint64_t bytes = count * rg::size_of(op.target.type);
  if (op.kind == RG_OP_COPY) {
    order(op);
    if (!regions_.ghosts()) unit_of(op.target).copy(regions_.address(op.target), regions_.address(op.source), bytes);
    return worked(op, bytes * 2);
  }
  auto w = rg::make_versioned<rg_work>();
  w.type = w.source_type = RG_F32;
  w.count = op.target.count;
  if (reads) w.source = regions_.address(op.source);
  if (indexed || op.kind == RG_OP_ACCUMULATE) {
    w.index = regions_.address(op.index);
    w.index_count = op.index.count;
  }
  return compute(op, w, bytes * (reads ? 3 : 2));
}

// Requires: `w` holds everything except kind, target and `a`, which come from `op`.
rg_status exchange::compute(const rg_op& op, rg_work& w) {
  order(op);
  w.kind = op.kind;
  w.a = op.a;
  w.target = regions_.address(op.target);
  if (!regions_.ghosts() && !unit_of(op.target).run(w))
    return refuse("arithmetic: an index names an element outside the buffer");
  return RG_OK;
}

rg_status exchange::compute(const rg_op& op, rg_work& w, std::uint64_t bytes) {
  const rg_status s = compute(op, w);
  return s < 0 ? s : worked(op, bytes);
}

rg_status exchange::convert(const rg_op& op) {
  const rg_buffer &to = op.target, &from = op.source;
  if (!regions_.contains(to) || !regions_.contains(from) || to.count != from.count)
    return refuse("convert: buffers outside their region, or of different length");
  const bool rounds = to.type == RG_F32 && from.type == RG_F32 && is_half(op.wire);
  const bool narrows = from.type == RG_F32 && is_half(to.type), widens = to.type == RG_F32 && is_half(from.type);
  if (!rounds && !narrows && !widens) return refuse("convert: between RG_F32 and RG_F16 or RG_BF16");
  auto w = rg::make_versioned<rg_work>();
  w.type = to.type;
  w.source_type = from.type;
  w.wire = op.wire;
  w.source = regions_.address(from);
  w.count = to.count;
  return compute(op, w, bytes_of(to) + bytes_of(from));
}

rg_status exchange::select(const rg_op& op) {
  if (!regions_.contains(op.source) || !regions_.contains(op.target) || !regions_.contains(op.index))
    return refuse("a selection names memory outside its region");
  if (op.source.type != RG_F32 || op.target.type != RG_F32 || op.index.type != RG_I32 ||
      op.index.count != op.target.count)
    return refuse("a selection is of RG_F32, into as many values as indices (RG_I32)");
  if (op.source.count > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    return refuse("a selection is of 2^31 elements at most");
  if (op.kind == RG_OP_TOP_K && op.target.count > op.source.count) return refuse("top k of fewer than k elements");
  auto w = rg::make_versioned<rg_work>();
  w.type = w.source_type = RG_F32;
  w.source = regions_.address(op.source);
  w.count = op.source.count;
  w.index = regions_.address(op.index);
  w.index_count = op.index.count;
  const auto touched = [&](std::uint64_t n) {
    return bytes_of(op.source) + n * (sizeof(float) + sizeof(std::int32_t));
  };
  if (op.kind == RG_OP_TOP_K) return compute(op, w, touched(op.target.count));
  std::uint64_t found = op.target.count;
  device::host_memory seen;
  const bool awaits = regions_.on_device(op.source);
  if (awaits) seen = pinned_pair();
  w.found = awaits ? static_cast<std::uint64_t*>(seen.get()) : &found;
  *w.found = found;
  if (const rg_status s = compute(op, w); s < 0) return s;
  if (awaits) {
    await(op, std::move(seen));
    return RG_OK;
  }
  if (found > op.target.count) return refuse(too_many_selected);
  end_later(op, setup_.caps.flags & RG_CAP_VIRTUAL ? virtual_ns(touched(found)) : 0, found * sizeof(float));
  return RG_OK;
}

// -------------------------------------------------------------------------------------------------- on a device ---

// Makes work that is enqueued next wait for the gradients in `b`.
void exchange::order(const rg_buffer& b) {
  if (!b.region || b.region != arena_.gradients.region || !b.count) return;
  const std::uint64_t last = (b.offset - arena_.gradients.offset) / sizeof(float) + b.count - 1;
  const auto bucket = static_cast<std::uint32_t>(std::upper_bound(bucket_ends_.begin(), bucket_ends_.end(), last) -
                                                 bucket_ends_.begin());
  // a bucket that is not ready is not waited for: the strategy does not read it yet
  if (bucket < ordered_ || bucket >= next_bucket_) return;
  device_->hold(device::computing, bucket_fences_[bucket]);
  ordered_ = bucket + 1;
}

void exchange::order(const rg_op& op) {
  if (!device_) return;
  if (op.after) device_->hold(device::computing, op.after);
  for (const rg_buffer* b : {&op.target, &op.source, &op.index}) order(*b);
}

// The model may read weights and write gradients after all work enqueued up to here.
void exchange::mark_weights() {
  if (device_) weights_after_.store(device_->record(device::computing), std::memory_order_release);
}

void exchange::settle() {
  if (!device_) return;
  for (const rg_fence f : bucket_fences_) device_->hold(device::computing, f);
  device_->settle();
}

device::host_memory exchange::pinned_pair() {
  if (pinned_.empty()) return device_->allocate_host(2 * sizeof(double));
  auto memory = std::move(pinned_.back());
  pinned_.pop_back();
  return memory;
}

void exchange::await(const rg_op& op, device::host_memory seen) {
  device_->after(device::watching, device::computing);
  awaited_.push_back({op, device_->record(device::watching), std::move(seen)});
  device_->notify(device::watching); // notify() comes after record(), so that the woken thread finds the fence passed
}

void exchange::end_awaited() {
  const auto passed =
      std::find_if(awaited_.begin(), awaited_.end(), [&](const awaited& w) { return !device_->passed(w.fence); });
  for (auto w = awaited_.begin(); w != passed; ++w) {
    rg_completion c{};
    c.cookie = w->op.cookie;
    if (w->op.kind == RG_OP_COMMIT) { // rows are committed by the host
      const std::uint64_t begin = steady_ns();
      commit(w->op, static_cast<const double*>(w->seen.get()));
      update_ns_[(w->op.flags & RG_OP_AS_SERVER) != 0] += steady_ns() - begin;
    } else {
      const std::uint64_t found = *static_cast<const std::uint64_t*>(w->seen.get());
      if (found > w->op.target.count) throw failure(exit_code::plugin, too_many_selected);
      c.bytes = found * sizeof(float);
    }
    pinned_.push_back(std::move(w->seen));
    completions_.push_back(c);
  }
  awaited_.erase(awaited_.begin(), passed);
}

} // namespace regatta

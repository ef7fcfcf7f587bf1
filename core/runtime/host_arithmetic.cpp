// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic operations of a strategy, computed where their buffers are. The host computes at once. A device computes
// after all work enqueued before, without the host waiting. Under a virtual clock an operation takes the time that one
// core would need, with ghosts too.
#include "runtime/strategy_host.hpp"

#include "base/failure.hpp"

#include <limits>
#include <utility>

#include <regatta/plugin.hpp>

namespace regatta {
namespace {

bool is_half(std::uint32_t type) {
  return type == RG_F16 || type == RG_BF16;
}

constexpr const char* too_many_selected = "select: more elements than the buffers hold";

} // namespace

// Time that a simulated rank needs to access `bytes`: 10 GB/s is one core's part of a server's memory bandwidth.
std::uint64_t strategy_host::virtual_ns(std::uint64_t bytes) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * 0.1);
}

processor& strategy_host::processor_of(const rg_buffer& b) {
  return regions_.on_device(b) ? processor_ : host_processor_;
}

bool strategy_host::in_one_memory(const rg_op& op) const {
  bool host = false, device = false;
  for (const rg_buffer* b : {&op.target, &op.source, &op.index})
    if (b->region) (regions_.on_device(*b) ? device : host) = true;
  return !(host && device);
}

rg_status strategy_host::arithmetic(const rg_op& op) {
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
    wait_for_inputs(op);
    if (!regions_.ghosts())
      processor_of(op.target).copy(regions_.address(op.target), regions_.address(op.source), bytes);
    return complete_work(op, bytes * 2);
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
rg_status strategy_host::compute(const rg_op& op, rg_work& w) {
  wait_for_inputs(op);
  w.kind = op.kind;
  w.a = op.a;
  w.target = regions_.address(op.target);
  if (!regions_.ghosts() && !processor_of(op.target).run(w))
    return refuse("arithmetic: an index names an element outside the buffer");
  return RG_OK;
}

rg_status strategy_host::compute(const rg_op& op, rg_work& w, std::uint64_t bytes) {
  const rg_status s = compute(op, w);
  return s < 0 ? s : complete_work(op, bytes);
}

rg_status strategy_host::convert(const rg_op& op) {
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

rg_status strategy_host::select(const rg_op& op) {
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
  const bool on_device = regions_.on_device(op.source);
  if (on_device) seen = device_operations_.pinned_pair();
  w.found = on_device ? static_cast<std::uint64_t*>(seen.get()) : &found;
  *w.found = op.source.count ? found : 0; // a device skips empty work
  if (const rg_status s = compute(op, w); s < 0) return s;
  if (on_device) {
    device_operations_.add(op, std::move(seen));
    return RG_OK;
  }
  if (found > op.target.count) return refuse(too_many_selected);
  complete_later(op, setup_.transport.caps.flags & RG_CAP_VIRTUAL ? virtual_ns(touched(found)) : 0,
                 found * sizeof(float));
  return RG_OK;
}

// -------------------------------------------------------------------------------------------------- on a device ---

// Makes work that is enqueued next wait for the gradients in `b`.
void strategy_host::wait_for_gradients(const rg_buffer& b) {
  if (!b.region || b.region != arena_.gradients.region || !b.count) return;
  const std::uint64_t last = (b.offset - arena_.gradients.offset) / sizeof(float) + b.count - 1;
  device_->wait_for(device::computing, buckets_.fence_to_wait_for(last)); // 0: does nothing
}

void strategy_host::wait_for_inputs(const rg_op& op) {
  if (!device_) return;
  if (op.after) device_->wait_for(device::computing, op.after);
  for (const rg_buffer* b : {&op.target, &op.source, &op.index}) wait_for_gradients(*b);
}

// The model may read weights and write gradients after all work enqueued up to here.
void strategy_host::record_weights_fence() {
  if (device_) weights_after_.store(device_->record(device::computing), std::memory_order_release);
}

void strategy_host::synchronize() {
  if (!device_) return;
  for (const rg_fence f : buckets_.fences()) device_->wait_for(device::computing, f);
  device_->synchronize();
}

void strategy_host::complete_device_operations() {
  device_operations_.complete_passed([this](const rg_op& op, const void* result) {
    rg_completion c{};
    c.cookie = op.cookie;
    if (op.kind == RG_OP_COMMIT) { // rows are committed by the host
      commit(op, static_cast<const double*>(result));
    } else {
      const std::uint64_t found = *static_cast<const std::uint64_t*>(result);
      if (found > op.target.count) throw failure(exit_code::plugin, too_many_selected);
      c.bytes = found * sizeof(float);
    }
    completions_.push_back(c);
  });
}

} // namespace regatta

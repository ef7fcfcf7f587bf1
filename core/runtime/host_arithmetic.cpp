// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic operations of a strategy, computed where their buffers are. The host computes at once. A device computes
// after all work enqueued before, without the host waiting. Under a virtual clock an operation takes the time that one
// core would need, with ghosts too.
#include "runtime/strategy_host.hpp"

#include "base/failure.hpp"
#include "memory/arithmetic.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <regatta/clock.hpp>
#include <regatta/gemm.hpp>
#include <regatta/operation_names.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

bool is_half(std::uint32_t type) {
  return type == RG_F16 || type == RG_BF16;
}

constexpr const char* too_many_selected = "select: more elements than the buffers hold";
constexpr const char* different_length = "buffers of different length";

// Returns the bytes that a selection of `n` elements touches.
std::uint64_t bytes_of_selection(const rg_buffer& source, std::uint64_t n) {
  return bytes_of(source) + n * (sizeof(float) + sizeof(std::int32_t));
}

} // namespace

processor& strategy_host::processor_of(const rg_buffer& b) {
  return regions_.on_device(b) ? processor_ : host_processor_;
}

// Computes `w` where `at` is, whose address is the work's target. Requires: `w` holds everything but its target.
rg_status strategy_host::compute(const rg_op& op, const rg_buffer& at, rg_work& w, std::uint64_t bytes) {
  w.kind = op.kind;
  w.target = regions_.address(at);
  if (!regions_.ghosts() && !processor_of(at).run(w)) reject(op, "an index names an element outside the buffer");
  return complete_work(op, bytes);
}

// Returns work on fp32 elements, without its kind and target.
rg_work strategy_host::work(std::uint64_t count) const {
  auto w = rg::make_versioned<rg_work>();
  w.type = w.source_type = RG_F32;
  w.count = count;
  return w;
}

void strategy_host::accept_index(const rg_op& op, const rg_buffer& target, const rg_buffer& index, rg_work& w) {
  if (!index.region) return;
  accept(op, {{"the target", target}, {"the index", index, RG_I32}});
  w.index = regions_.address(index);
  w.index_count = index.count;
}

rg_status strategy_host::fill(const rg_op_fill& o) {
  auto w = work(o.target.count);
  w.value = o.value;
  accept(o.op, {{"the target", o.target, RG_F32}});
  accept_index(o.op, o.target, o.index, w);
  return compute(o.op, o.target, w, (o.index.region ? o.index.count : o.target.count) * sizeof(float) * 2);
}

rg_status strategy_host::copy(const rg_op_copy& o) {
  accept(o.op, {{"the target", o.target}, {"the source", o.source, o.target.type}});
  if (o.source.count != o.target.count) reject(o.op, different_length);
  const std::uint64_t bytes = bytes_of(o.target);
  if (!regions_.ghosts()) processor_of(o.target).copy(regions_.address(o.target), regions_.address(o.source), bytes);
  return complete_work(o.op, bytes * 2);
}

rg_status strategy_host::axpy(const rg_op_axpy& o) {
  auto w = work(o.target.count);
  w.factor = o.factor;
  accept(o.op, {{"the target", o.target, RG_F32}, {"the source", o.source, RG_F32}});
  accept_index(o.op, o.target, o.index, w);
  const std::uint64_t count = o.index.region ? o.index.count : o.target.count;
  if (o.source.count != count) reject(o.op, different_length);
  w.source = regions_.address(o.source);
  return compute(o.op, o.target, w, count * sizeof(float) * 3);
}

rg_status strategy_host::scale(const rg_op& op, const rg_buffer& target, double a) {
  auto w = work(target.count);
  (op.kind == RG_OP_CLIP ? w.max_norm : w.factor) = a;
  accept(op, {{"the target", target, RG_F32}});
  return compute(op, target, w, bytes_of(target) * 2);
}

// Completes arithmetic that takes long: the host computes `f` off the loop, one function after the other, and under a
// virtual clock when its declared time is over, so that results show who did not wait for it.
rg_status strategy_host::compute_apart(const rg_op& op, std::uint64_t cost, std::function<rg_status()> f) {
  if (setup_.transport.caps.flags & RG_CAP_VIRTUAL) {
    const std::uint64_t ns = setup_.work.of(op.kind, cost);
    functions_end_ = std::max(functions_end_, now()) + ns;
    if (setup_.work.begun) setup_.work.begun(ns, functions_end_);
    timers_.add(functions_end_, op.cookie, 0, regions_.ghosts() ? nullptr : std::move(f));
  } else {
    if (trace_recorder* const trace = setup_.trace; trace && trace->on())
      f = [trace, f = std::move(f), name = rg::operation_name(op.kind)] {
        const std::uint64_t begin = rg::now_ns();
        const rg_status status = f();
        trace->span(event_origin::functions, name, "operation", begin, rg::now_ns());
        return status;
      };
    functions_.add(op.cookie, std::move(f));
  }
  return RG_OK;
}

rg_status strategy_host::run(const rg_op_run& o) {
  if (!o.function || o.buffer_count > RG_MAX_RUN_BUFFERS || !(o.bytes || o.flops))
    reject(o.op, fmt::format("expected a function, {} buffers at most, bytes or flops above 0", RG_MAX_RUN_BUFFERS));
  std::array<void*, RG_MAX_RUN_BUFFERS> addresses{};
  for (std::uint32_t i = 0; i < o.buffer_count; ++i) {
    accept(o.op, {{"a buffer", o.buffers[i]}, {"the first buffer", o.buffers[0]}});
    addresses[i] = regions_.address(o.buffers[i]);
  }
  auto at = rg::make_versioned<rg_run>();
  at.buffer_count = o.buffer_count;
  const bool on_device = o.buffer_count && regions_.on_device(o.buffers[0]);
  if (!(o.memory & (on_device ? RG_MEMORY_DEVICE : RG_MEMORY_HOST)))
    reject(o.op, fmt::format("the function cannot compute where the buffers are, {} (rg_op_run.memory)",
                             on_device ? "on a device" : "in host memory"));
  if (on_device) {
    at.device = device_->kind();
    at.stream = device_->handle(device::computing);
  }
  const auto call = [this, at, addresses, function = o.function, context = o.context] {
    rg_run here = at;
    here.addresses = addresses.data();
    return rg::fence(plugin_host_.c(), [&] { return function(context, &here); });
  };
  if (!on_device) return compute_apart(o.op, std::max(o.bytes, o.flops), call);
  const rg_status s = call();
  return s < 0 ? s : rg_status{RG_DONE};
}

rg_status strategy_host::gemm(const rg_op_gemm& o) {
  const rg_gemm& g = o.gemm;
  if ((g.a_type != RG_F32 && g.a_type != RG_BF16) || g.b_type != g.a_type || g.c_type != RG_F32)
    reject(o.op,
           fmt::format("expected c of RG_F32, and a and b both of RG_F32 or both of RG_BF16; got types {}, {}, {}",
                       g.a_type, g.b_type, g.c_type));
  accept(o.op, {{"a", o.a, g.a_type}, {"b", o.b, g.b_type}, {"c", o.c, g.c_type}});
  if (!rg::fits(g, o.a.count, o.b.count, o.c.count)) reject(o.op, "expected matrices that lie within their buffers");
  const void *const a = regions_.address(o.a), *const b = regions_.address(o.b);
  auto* const c = static_cast<float*>(regions_.address(o.c));
  if (!g.m || !g.n) return RG_DONE;
  if (!regions_.on_device(o.c))
    return compute_apart(o.op, std::max(rg::bytes_of(g), rg::flops_of(g)), [=] {
      arithmetic::gemm(g, a, b, c);
      return rg_status{RG_OK};
    });
  device_->gemm(g, a, b, c);
  return RG_DONE;
}

rg_status strategy_host::accumulate(const rg_op_accumulate& o) {
  auto w = work(o.velocity.count);
  w.factor = o.factor;
  accept(o.op,
         {{"the velocity", o.velocity, RG_F32}, {"the gradient", o.gradient, RG_F32}, {"the sum", o.sum, RG_F32}});
  if (o.gradient.count != w.count || o.sum.count != w.count) reject(o.op, different_length);
  w.source = regions_.address(o.gradient);
  w.sum = static_cast<float*>(regions_.address(o.sum));
  return compute(o.op, o.velocity, w, bytes_of(o.velocity) * 3);
}

rg_status strategy_host::convert(const rg_op_convert& o) {
  const rg_buffer &to = o.target, &from = o.source;
  accept(o.op, {{"the target", to}, {"the source", from}});
  if (to.count != from.count) reject(o.op, different_length);
  const bool rounds = to.type == RG_F32 && from.type == RG_F32 && is_half(o.round_to);
  const bool narrows = from.type == RG_F32 && is_half(to.type), widens = to.type == RG_F32 && is_half(from.type);
  if (!rounds && !narrows && !widens) reject(o.op, "between RG_F32 and RG_F16 or RG_BF16 only");
  auto w = work(to.count);
  w.type = to.type;
  w.source_type = from.type;
  w.round_to = o.round_to;
  w.source = regions_.address(from);
  return compute(o.op, to, w, bytes_of(to) + bytes_of(from));
}

// Checks the buffers of TOP_K and SELECT, and fills in the work.
void strategy_host::accept_selection(const rg_op& op, const rg_buffer& source, const rg_buffer& values,
                                     const rg_buffer& index, rg_work& w) {
  accept(op, {{"the source", source, RG_F32}, {"the values", values, RG_F32}, {"the index", index, RG_I32}});
  if (index.count != values.count) reject(op, "expected as many values as indices");
  if (source.count > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    reject(op, "of more than 2^31 - 1 elements");
  w.source = regions_.address(source);
  w.index = regions_.address(index);
  w.index_count = index.count;
}

rg_status strategy_host::top_k(const rg_op_top_k& o) {
  auto w = work(o.source.count);
  accept_selection(o.op, o.source, o.values, o.index, w);
  if (o.values.count > o.source.count) reject(o.op, "of fewer than k elements");
  return compute(o.op, o.values, w, bytes_of_selection(o.source, o.values.count));
}

rg_status strategy_host::select(const rg_op_select& o) {
  auto w = work(o.source.count);
  w.threshold = o.threshold;
  accept_selection(o.op, o.source, o.values, o.index, w);
  std::uint64_t found = o.values.count;
  device::host_memory seen;
  const bool on_device = regions_.on_device(o.source);
  if (on_device) seen = device_operations_.pinned_pair();
  w.found = on_device ? static_cast<std::uint64_t*>(seen.get()) : &found;
  *w.found = o.source.count ? found : 0; // a device skips empty work
  w.kind = o.op.kind;
  w.target = regions_.address(o.values);
  if (!regions_.ghosts()) processor_of(o.values).run(w);
  if (on_device) {
    device_operations_.add(o, std::move(seen));
    return RG_OK;
  }
  if (found > o.values.count) refuse(too_many_selected);
  complete_later(
      o.op,
      setup_.transport.caps.flags & RG_CAP_VIRTUAL ? setup_.work.of(o.op.kind, bytes_of_selection(o.source, found)) : 0,
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
  device_operations_.complete_passed([this](const device_operations::operation& done, const void* result) {
    rg_completion c{};
    if (const auto* o = std::get_if<rg_op_commit>(&done)) { // rows are committed by the host
      c.cookie = o->op.cookie;
      commit(is_server(o->role), static_cast<const double*>(result), o->step);
    } else {
      const auto& selected = std::get<rg_op_select>(done);
      const std::uint64_t found = *static_cast<const std::uint64_t*>(result);
      if (found > selected.values.count) throw failure(exit_code::plugin, too_many_selected);
      c.cookie = selected.op.cookie;
      c.bytes = found * sizeof(float);
    }
    completions_.push_back(c);
  });
}

} // namespace regatta

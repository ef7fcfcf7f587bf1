// SPDX-License-Identifier: Apache-2.0
#include "runtime/local_operations.hpp"

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

// A product of as many bytes and flops takes a fraction of a ms. Handing it to another thread, and waking up again, takes
// some 60 us: PowerSGD of mlp, two workers on one core each, trains 9,700 samples/s if all products are handed over,
// 13,200 with this limit, and 13,600 with 16 MiB (docs/results/ddp.md). The loop moves no messages meanwhile.
constexpr std::uint64_t computed_on_loop = 4 << 20;
constexpr const char* too_many_selected = "select: more elements than the buffers hold";
constexpr const char* different_length = "buffers of different length";

// Returns the bytes that a selection of `n` elements touches.
std::uint64_t bytes_of_selection(const rg_buffer& source, std::uint64_t n) {
  return bytes_of(source) + n * (sizeof(float) + sizeof(std::int32_t));
}

} // namespace

rg_work work_on(std::uint64_t count) {
  auto w = rg::make_versioned<rg_work>();
  w.type = w.source_type = RG_F32;
  w.count = count;
  return w;
}

local_operations::local_operations(const transport_instance& transport, const virtual_work& work, region_table& regions,
                                   const rg_arena& arena, gradient_buckets& buckets, plugin_host& host,
                                   trace_recorder* trace, device* d)
    : transport_(transport), work_(work), regions_(regions), arena_(arena), buckets_(buckets), plugin_host_(host),
      trace_(trace), device_(d), device_operations_(d),
      functions_([this] { transport_.functions->wake(transport_.self); }) {}

std::uint64_t local_operations::now() const {
  return transport_.functions->now && is_virtual() ? transport_.functions->now(transport_.self) : rg::now_ns();
}

rg_status local_operations::execute(const rg_op& op) {
  switch (op.kind) {
  case RG_OP_FILL: return fill(typed<rg_op_fill>(op));
  case RG_OP_COPY: return copy(typed<rg_op_copy>(op));
  case RG_OP_AXPY: return axpy(typed<rg_op_axpy>(op));
  case RG_OP_SCALE: return scale(op, typed<rg_op_scale>(op).target, typed<rg_op_scale>(op).factor);
  case RG_OP_CLIP: return scale(op, typed<rg_op_clip>(op).target, typed<rg_op_clip>(op).max_norm);
  case RG_OP_ACCUMULATE: return accumulate(typed<rg_op_accumulate>(op));
  case RG_OP_CONVERT: return convert(typed<rg_op_convert>(op));
  case RG_OP_TOP_K: return top_k(typed<rg_op_top_k>(op));
  case RG_OP_SELECT: return select(typed<rg_op_select>(op));
  case RG_OP_GEMM: return gemm(typed<rg_op_gemm>(op));
  case RG_OP_RUN: return run(typed<rg_op_run>(op));
  case RG_OP_TIMER:
    timers_.add(work_.end_of(now(), typed<rg_op_timer>(op).delay_ns, false), op.cookie, 0);
    return RG_OK;
  default: refuse_call(fmt::format("operation {:#x} is unknown to this engine", op.kind));
  }
}

void local_operations::accept(const rg_op& op, std::initializer_list<operand> operands) {
  bool host = false, device = false;
  for (const operand& o : operands) {
    if (!regions_.contains(o.buffer)) refuse_operation(op, fmt::format("{} lies outside its region", o.name));
    if (o.type && o.buffer.type != o.type) refuse_operation(op, fmt::format("{} has the wrong type", o.name));
    (regions_.on_device(o.buffer) ? device : host) = true;
  }
  if (host && device) refuse_operation(op, "names both the host's memory and a device's");
  if (!device_) return;
  if (op.after) device_->wait_for(device::computing, op.after);
  for (const operand& o : operands) wait_for_gradients(o.buffer);
}

rg_status local_operations::complete_work(const rg_op& op, std::uint64_t bytes) {
  if (!is_virtual()) return RG_DONE;
  timers_.add(work_end(op, bytes), op.cookie, 0);
  return RG_OK;
}

std::uint64_t local_operations::work_end(const rg_op& op, std::uint64_t bytes) {
  const std::uint64_t end = work_.end_of(work_.in_turn ? std::max(work_end_, now()) : now(), work_.of(op.kind, bytes));
  if (work_.in_turn) work_end_ = end;
  return end;
}

rg_status local_operations::take_ended(std::vector<rg_completion>& out, const commit_function& committed) {
  rg_status first = timers_.complete_due([this] { return now(); }, out);
  if (!device_operations_.empty())
    device_operations_.complete_passed([&](const device_operations::operation& done, const void* result) {
      rg_completion c{};
      if (const auto* o = std::get_if<rg_op_commit>(&done)) {
        c.cookie = o->op.cookie;
        committed(*o, static_cast<const double*>(result));
      } else {
        const auto& selected = std::get<rg_op_select>(done);
        const std::uint64_t found = *static_cast<const std::uint64_t*>(result);
        if (found > selected.values.count) refuse_call(too_many_selected);
        c.cookie = selected.op.cookie;
        c.bytes = found * sizeof(float);
      }
      out.push_back(c);
    });
  if (!functions_.empty()) first = functions_.take_ended(out);
  return first;
}

processor& local_operations::processor_of(const rg_buffer& b) {
  return regions_.on_device(b) ? of_arena() : host_processor_;
}

rg_status local_operations::compute(const rg_op& op, const rg_buffer& at, rg_work& w, std::uint64_t bytes) {
  w.kind = op.kind;
  w.target = regions_.address(at);
  if (!regions_.ghosts() && !processor_of(at).run(w))
    refuse_operation(op, "an index names an element outside the buffer");
  rg_op timed = op;
  if (w.type == RG_F16 || w.source_type == RG_F16 || w.round_to == RG_F16) timed.kind = virtual_work::fp16_conversion;
  return complete_work(timed, bytes);
}

void local_operations::accept_index(const rg_op& op, const rg_buffer& target, const rg_buffer& index, rg_work& w) {
  if (!index.region) return;
  accept(op, {{"the target", target}, {"the index", index, RG_I32}});
  w.index = regions_.address(index);
  w.index_count = index.count;
}

rg_status local_operations::fill(const rg_op_fill& o) {
  auto w = work_on(o.target.count);
  w.value = o.value;
  accept(o.op, {{"the target", o.target, RG_F32}});
  accept_index(o.op, o.target, o.index, w);
  return compute(o.op, o.target, w, (o.index.region ? o.index.count : o.target.count) * sizeof(float) * 2);
}

rg_status local_operations::copy(const rg_op_copy& o) {
  accept(o.op, {{"the target", o.target}, {"the source", o.source, o.target.type}});
  if (o.source.count != o.target.count) refuse_operation(o.op, different_length);
  const std::uint64_t bytes = bytes_of(o.target);
  if (!regions_.ghosts()) processor_of(o.target).copy(regions_.address(o.target), regions_.address(o.source), bytes);
  return complete_work(o.op, bytes * 2);
}

rg_status local_operations::axpy(const rg_op_axpy& o) {
  auto w = work_on(o.target.count);
  w.factor = o.factor;
  accept(o.op, {{"the target", o.target, RG_F32}, {"the source", o.source, RG_F32}});
  accept_index(o.op, o.target, o.index, w);
  const std::uint64_t count = o.index.region ? o.index.count : o.target.count;
  if (o.source.count != count) refuse_operation(o.op, different_length);
  w.source = regions_.address(o.source);
  return compute(o.op, o.target, w, count * sizeof(float) * 3);
}

rg_status local_operations::scale(const rg_op& op, const rg_buffer& target, double a) {
  auto w = work_on(target.count);
  (op.kind == RG_OP_CLIP ? w.max_norm : w.factor) = a;
  accept(op, {{"the target", target, RG_F32}});
  return compute(op, target, w, bytes_of(target) * 2);
}

// Completes arithmetic that takes long: the host computes `f` off the loop, one function after the other, and under a
// virtual clock when its declared time is over, so that results show who did not wait for it.
rg_status local_operations::compute_apart(const rg_op& op, std::uint64_t cost, std::function<rg_status()> f) {
  if (is_virtual()) {
    const std::uint64_t begin = std::max(functions_end_, now());
    functions_end_ = work_.end_of(begin, work_.of(op.kind, cost));
    if (trace_ && trace_->on())
      trace_->span(event_origin::functions, rg::operation_name(op.kind), "operation", begin, functions_end_);
    timers_.add(functions_end_, op.cookie, 0, regions_.ghosts() ? nullptr : std::move(f));
  } else {
    if (trace_recorder* const trace = trace_; trace && trace->on())
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

rg_status local_operations::run(const rg_op_run& o) {
  if (!o.function || o.buffer_count > RG_MAX_RUN_BUFFERS || !(o.bytes || o.flops))
    refuse_operation(
        o.op, fmt::format("expected a function, {} buffers at most, bytes or flops above 0", RG_MAX_RUN_BUFFERS));
  std::array<void*, RG_MAX_RUN_BUFFERS> addresses{};
  for (std::uint32_t i = 0; i < o.buffer_count; ++i) {
    accept(o.op, {{"a buffer", o.buffers[i]}, {"the first buffer", o.buffers[0]}});
    addresses[i] = regions_.address(o.buffers[i]);
  }
  auto at = rg::make_versioned<rg_run>();
  at.buffer_count = o.buffer_count;
  const bool on_device = o.buffer_count && regions_.on_device(o.buffers[0]);
  if (!(o.memory & (on_device ? RG_MEMORY_DEVICE : RG_MEMORY_HOST)))
    refuse_operation(o.op, fmt::format("the function cannot compute where the buffers are, {} (rg_op_run.memory)",
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

rg_status local_operations::gemm(const rg_op_gemm& o) {
  const rg_gemm& g = o.gemm;
  if ((g.a_type != RG_F32 && g.a_type != RG_BF16) || g.b_type != g.a_type || g.c_type != RG_F32)
    refuse_operation(
        o.op, fmt::format("expected c of RG_F32, and a and b both of RG_F32 or both of RG_BF16; got types {}, {}, {}",
                          g.a_type, g.b_type, g.c_type));
  accept(o.op, {{"a", o.a, g.a_type}, {"b", o.b, g.b_type}, {"c", o.c, g.c_type}});
  if (!rg::fits(g, o.a.count, o.b.count, o.c.count))
    refuse_operation(o.op, "expected matrices that lie within their buffers");
  const void *const a = regions_.address(o.a), *const b = regions_.address(o.b);
  auto* const c = static_cast<float*>(regions_.address(o.c));
  if (!g.m || !g.n) return RG_DONE;
  const std::uint64_t cost = std::max(rg::bytes_of(g), rg::flops_of(g));
  const auto compute_here = [=] {
    arithmetic::gemm(g, a, b, c);
    return rg_status{RG_OK};
  };
  if (regions_.on_device(o.c))
    device_->gemm(g, a, b, c);
  else if (is_virtual() || cost > computed_on_loop || has_functions()) // functions run in the order of their calls
    return compute_apart(o.op, cost, compute_here);
  else
    compute_here();
  return RG_DONE;
}

rg_status local_operations::accumulate(const rg_op_accumulate& o) {
  auto w = work_on(o.velocity.count);
  w.factor = o.factor;
  accept(o.op,
         {{"the velocity", o.velocity, RG_F32}, {"the gradient", o.gradient, RG_F32}, {"the sum", o.sum, RG_F32}});
  if (o.gradient.count != w.count || o.sum.count != w.count) refuse_operation(o.op, different_length);
  w.source = regions_.address(o.gradient);
  w.sum = static_cast<float*>(regions_.address(o.sum));
  return compute(o.op, o.velocity, w, bytes_of(o.velocity) * 3);
}

rg_status local_operations::convert(const rg_op_convert& o) {
  const rg_buffer &to = o.target, &from = o.source;
  accept(o.op, {{"the target", to}, {"the source", from}});
  if (to.count != from.count) refuse_operation(o.op, different_length);
  const bool rounds = to.type == RG_F32 && from.type == RG_F32 && is_half(o.round_to);
  const bool narrows = from.type == RG_F32 && is_half(to.type), widens = to.type == RG_F32 && is_half(from.type);
  if (!rounds && !narrows && !widens) refuse_operation(o.op, "between RG_F32 and RG_F16 or RG_BF16 only");
  auto w = work_on(to.count);
  w.type = to.type;
  w.source_type = from.type;
  w.round_to = o.round_to;
  w.source = regions_.address(from);
  return compute(o.op, to, w, bytes_of(to) + bytes_of(from));
}

// Checks the buffers of TOP_K and SELECT, and fills in the work.
void local_operations::accept_selection(const rg_op& op, const rg_buffer& source, const rg_buffer& values,
                                        const rg_buffer& index, rg_work& w) {
  accept(op, {{"the source", source, RG_F32}, {"the values", values, RG_F32}, {"the index", index, RG_I32}});
  if (index.count != values.count) refuse_operation(op, "expected as many values as indices");
  if (source.count > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    refuse_operation(op, "of more than 2^31 - 1 elements");
  w.source = regions_.address(source);
  w.index = regions_.address(index);
  w.index_count = index.count;
}

rg_status local_operations::top_k(const rg_op_top_k& o) {
  auto w = work_on(o.source.count);
  accept_selection(o.op, o.source, o.values, o.index, w);
  if (o.values.count > o.source.count) refuse_operation(o.op, "of fewer than k elements");
  return compute(o.op, o.values, w, bytes_of_selection(o.source, o.values.count));
}

rg_status local_operations::select(const rg_op_select& o) {
  auto w = work_on(o.source.count);
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
  if (found > o.values.count) refuse_call(too_many_selected);
  timers_.add(is_virtual() ? work_end(o.op, bytes_of_selection(o.source, found)) : now(), o.op.cookie,
              found * sizeof(float));
  return RG_OK;
}

void local_operations::wait_for_gradients(const rg_buffer& b) {
  if (!b.region || b.region != arena_.gradients.region || !b.count) return;
  const std::uint64_t last = (b.offset - arena_.gradients.offset) / sizeof(float) + b.count - 1;
  device_->wait_for(device::computing, buckets_.fence_to_wait_for(last)); // 0: does nothing
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Executes the operations that a strategy submits: checks them, and passes them to the transport, the optimizer or the
// sparse tables. host_arithmetic.cpp has the arithmetic ones.
#include "runtime/strategy_host.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <regatta/clock.hpp>
#include <regatta/operation_names.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

// Returns an operation as this engine knows it, with zeros for the members that the strategy's version of the interface
// does not have.
template <class Op> Op typed(const rg_op& op) {
  Op copy{};
  std::memcpy(static_cast<void*>(&copy), &op, std::min<std::size_t>(op.struct_size, sizeof copy));
  return copy;
}

} // namespace

void strategy_host::reject(const rg_op& op, const std::string& why) {
  refuse(fmt::format("{}: {}", rg::operation_name(op.kind), why));
}

std::uint64_t strategy_host::now() const {
  return transport_.now && (setup_.transport.caps.flags & RG_CAP_VIRTUAL) ? transport_.now(setup_.transport.self)
                                                                          : rg::now_ns();
}

template <class Op> rg_status strategy_host::rows(const Op& o) {
  return complete_work(o.op, updates_->measure(is_server(o.role), [&] { return tables_->operate(o); }));
}

// Executes an operation, and records those of the engine's own; `transfers` records messages.
rg_status strategy_host::submit(const rg_op& op) {
  trace_recorder* const trace = setup_.trace;
  if (!trace || !trace->on() || op.kind <= RG_OP_BARRIER || op.kind == RG_OP_TIMER) return execute(op);
  const std::uint64_t begin = now(), busy_until = work_end_;
  const rg_status status = execute(op);
  const bool in_turn = work_end_ > busy_until; // under a virtual clock: it ends later
  const bool updates = op.kind == RG_OP_APPLY || op.kind == RG_OP_COMMIT || op.kind == RG_OP_ROWS_APPLY;
  const bool server = op.kind == RG_OP_APPLY && typed<rg_op_apply>(op).role == RG_ROLE_SERVER;
  trace->span(event_origin::loop, server ? "apply as server" : rg::operation_name(op.kind),
              updates ? "update" : "operation", in_turn ? std::max(begin, busy_until) : begin,
              in_turn ? work_end_ : now());
  return status;
}

rg_status strategy_host::execute(const rg_op& op) {
  switch (op.kind) {
  case RG_OP_SEND:
  case RG_OP_RECV: return transfer(typed<rg_op_transfer>(op));
  case RG_OP_ALL_REDUCE:
  case RG_OP_REDUCE_SCATTER:
  case RG_OP_ALL_GATHER:
  case RG_OP_BROADCAST:
  case RG_OP_REDUCE:
  case RG_OP_GATHER:
  case RG_OP_SCATTER:
  case RG_OP_ALL_TO_ALL:
  case RG_OP_BARRIER: return collective(typed<rg_op_collective>(op));
  case RG_OP_FILL: return fill(typed<rg_op_fill>(op));
  case RG_OP_COPY: return copy(typed<rg_op_copy>(op));
  case RG_OP_AXPY: return axpy(typed<rg_op_axpy>(op));
  case RG_OP_SCALE: return scale(op, typed<rg_op_scale>(op).target, typed<rg_op_scale>(op).factor);
  case RG_OP_CLIP: return scale(op, typed<rg_op_clip>(op).target, typed<rg_op_clip>(op).max_norm);
  case RG_OP_ACCUMULATE: return accumulate(typed<rg_op_accumulate>(op));
  case RG_OP_CONVERT: return convert(typed<rg_op_convert>(op));
  case RG_OP_TOP_K: return top_k(typed<rg_op_top_k>(op));
  case RG_OP_SELECT: return select(typed<rg_op_select>(op));
  case RG_OP_GATHER_ROWS:
  case RG_OP_SCATTER_ROWS: return complete_work(op, tables_->operate(typed<rg_op_copy_rows>(op)));
  case RG_OP_GEMM: return gemm(typed<rg_op_gemm>(op));
  case RG_OP_RUN: return run(typed<rg_op_run>(op));
  case RG_OP_APPLY: return apply(typed<rg_op_apply>(op));
  case RG_OP_NORM: return norm(typed<rg_op_norm>(op));
  case RG_OP_COMMIT: return commit(typed<rg_op_commit>(op));
  case RG_OP_ROWS_READ: return rows(typed<rg_op_rows_read>(op));
  case RG_OP_ROWS_ADD: return rows(typed<rg_op_rows_add>(op));
  case RG_OP_ROWS_APPLY: return rows(typed<rg_op_rows_apply>(op));
  case RG_OP_ROWS_WRITE: return rows(typed<rg_op_rows_write>(op));
  case RG_OP_TIMER: complete_later(op, typed<rg_op_timer>(op).delay_ns, 0); return RG_OK;
  default: refuse(fmt::format("operation {:#x} is unknown to this engine", op.kind));
  }
}

// Checks an operation's buffers (throws failure if one is wrong), and makes the device's next work wait for the
// operation's fence and for the gradients that these buffers hold.
void strategy_host::accept(const rg_op& op, std::initializer_list<operand> operands) {
  bool host = false, device = false;
  for (const operand& o : operands) {
    if (!regions_.contains(o.buffer)) reject(op, fmt::format("{} lies outside its region", o.name));
    if (o.type && o.buffer.type != o.type) reject(op, fmt::format("{} has the wrong type", o.name));
    (regions_.on_device(o.buffer) ? device : host) = true;
  }
  if (host && device) reject(op, "names both the host's memory and a device's");
  if (!device_) return;
  if (op.after) device_->wait_for(device::computing, op.after);
  for (const operand& o : operands) wait_for_gradients(o.buffer);
}

bool strategy_host::transport_reaches(const rg_buffer& b) const {
  return !device_ || regions_.on_device(b) || (setup_.transport.caps.memory & RG_MEMORY_HOST);
}

constexpr const char* out_of_reach =
    "the buffer is in host memory, which this transport cannot reach: take alloc() for it, or run over shm or tcp";

bool strategy_host::talks_to(std::uint32_t peer) {
  if (peer == cluster_.rank || !setup_.strategy->talks) return true;
  if (asked_.empty()) {
    asked_.resize(cluster_.size);
    talks_.resize(cluster_.size);
  }
  if (!asked_[peer]) {
    rg_cluster all = cluster_; // as talks() sees it: a view of no rank
    all.rank = UINT32_MAX;
    all.worker = all.server = -1;
    all.flags = arena_.table_count ? RG_HOST_TABLES : 0;
    const auto [a, b] = std::minmax(peer, cluster_.rank);
    talks_[peer] = setup_.strategy->talks(setup_.values, &all, a, b);
    asked_[peer] = true;
  }
  return talks_[peer];
}

// Returns the bucket of a buffer in this rank's weights or gradients, for the trace.
std::uint32_t strategy_host::bucket_of(const rg_buffer& b) const {
  const auto ends = buckets_.ends();
  for (const rg_buffer* all : {&arena_.gradients, &arena_.weights}) {
    if (!all->region || b.region != all->region || ends.empty()) continue;
    const std::uint64_t first = (b.offset - all->offset) / sizeof(float);
    return static_cast<std::uint32_t>(std::ranges::upper_bound(ends, first) - ends.begin());
  }
  return no_bucket;
}

rg_status strategy_host::transfer(const rg_op_transfer& o) {
  const rg_buffer& b = o.buffer;
  accept(o.op, {{"the buffer", b}});
  if (o.peer != cluster_.rank && !transport_reaches(b)) reject(o.op, out_of_reach);
  if (o.peer >= cluster_.size || o.lane >= setup_.lanes)
    refuse(fmt::format("a transfer with rank {} on lane {}: there are {} ranks and {} lanes", o.peer, o.lane,
                       cluster_.size, setup_.lanes));
  if (!talks_to(o.peer))
    refuse(fmt::format("a transfer with rank {}: talks({}, {}) says that these ranks exchange no message; it must "
                       "return 1 for them",
                       o.peer, std::min(o.peer, cluster_.rank), std::max(o.peer, cluster_.rank)));
  const bool add = o.flags & RG_OP_ADD;
  if (add && b.type != RG_F32 && b.type != RG_F64) refuse("a receive that adds is of RG_F32 or RG_F64");
  if (o.wire && o.wire != RG_F32 && (b.type != RG_F32 || (o.wire != RG_F16 && o.wire != RG_BF16)))
    refuse("a transfer converts RG_F32 to RG_F16 or RG_BF16, nothing else");
  const std::uint32_t wire = o.wire == RG_F32 ? 0 : o.wire;
  if (setup_.trace) transfers_.next_carries(bucket_of(b));
  if (o.op.kind == RG_OP_SEND)
    transfers_.send(o.op.cookie, o.peer, first_lane_ + o.lane, b, wire);
  else
    transfers_.recv(o.op.cookie, o.peer, first_lane_ + o.lane, b, add, wire);
  return RG_OK;
}

rg_status strategy_host::collective(const rg_op_collective& o) {
  const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) { return g.id == o.group; });
  if (group == groups_.end()) reject(o.op, fmt::format("group {} is not from split()", o.group));
  if (const char* wrong = error_in(o, *group)) reject(o.op, wrong);
  const auto [source, target] = buffers_of(o, *group);
  const rg_buffer* any = source ? source : target;
  if (!offers(o.op.kind, o.reduction, any ? any->type : std::uint32_t{RG_U8}, o.wire))
    reject(o.op, "the transport has none of this type, reduction and wire type");
  if (any) {
    const rg_buffer& other = target ? *target : *any;
    accept(o.op, {{"the source", *any}, {"the target", other}});
    if (!transport_reaches(*any)) reject(o.op, out_of_reach);
  }
  transfers_.collective(o, collectives_.begin, source, target);
  return RG_OK;
}

bool strategy_host::offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const {
  return collectives_.begin && collectives_.offers(setup_.transport.self, kind, reduction, type, wire);
}

rg_status strategy_host::apply(const rg_op_apply& o) {
  accept(o.op, {{"the gradient", o.gradient, RG_F32}});
  if (device_ && !regions_.on_device(o.gradient)) reject(o.op, "the gradient is not where the weights are");
  const bool server = is_server(o.role);
  if (!regions_.ghosts())
    updates_->measure(server,
                      [&] { updates_->apply(server, o.first, regions_.elements<const float>(o.gradient), o.step); });
  return complete_work(o.op, bytes_of(o.gradient) * 5); // reads and writes weights and state, reads the gradient
}

void strategy_host::accept_norm(const rg_op& op, const rg_buffer& pair) {
  accept(op, {{"the norm", pair, RG_F64}});
  if (pair.count != 2) reject(op, "the norm has two elements");
  if (device_ && !regions_.on_device(pair)) reject(op, "the norm is not where the weights are");
}

rg_status strategy_host::norm(const rg_op_norm& o) {
  accept_norm(o.op, o.target);
  const bool server = is_server(o.role);
  if (auto* const pair = static_cast<double*>(regions_.address(o.target)))
    updates_->measure(server, [&] {
      updates_->role(server).partial(pair);
      add_norm_of_rows(server, pair);
    });
  return complete_work(o.op, 0);
}

rg_status strategy_host::commit(const rg_op_commit& o) {
  accept_norm(o.op, o.total);
  const bool server = is_server(o.role);
  const auto* const pair = static_cast<const double*>(regions_.address(o.total));
  // The host needs the norm, to know how much to clip or whether to skip the update.
  if (device_) {
    auto seen = device_operations_.pinned_pair();
    device_->copy(seen.get(), pair, 2 * sizeof(double));
    device_operations_.add(o, std::move(seen));
    return RG_OK;
  }
  if (pair) commit(server, pair, o.step);
  return complete_work(o.op, 0);
}

void strategy_host::add_norm_of_rows(bool server, double* pair) {
  if (tables_->windows().empty()) return;
  const auto rows = tables_->partial(server);
  double mine[] = {static_cast<double>(rows.not_finite), rows.sum_of_squares};
  auto w = work(2);
  w.factor = 1;
  w.kind = RG_OP_AXPY;
  w.type = w.source_type = RG_F64;
  w.target = pair;
  w.source = mine;
  if (device_) w.source = std::memcpy(norm_of_rows_[server].get(), mine, sizeof mine);
  processor_.run(w);
}

void strategy_host::commit(bool server, const double* total, std::uint64_t step) {
  updates_->measure(server, [&] {
    updates_->commit(server, {total[0], total[1]}, step);
    tables_->commit(server, {total[0], total[1]}, step);
  });
}

rg_status strategy_host::complete_work(const rg_op& op, std::uint64_t bytes) {
  if (!(setup_.transport.caps.flags & RG_CAP_VIRTUAL)) return RG_DONE;
  const std::uint64_t ns = setup_.work.of(op.kind, bytes);
  std::uint64_t end = now() + ns;
  if (setup_.work.in_turn) end = work_end_ = std::max(work_end_, now()) + ns;
  if (setup_.work.begun) setup_.work.begun(ns, end);
  timers_.add(end, op.cookie, 0);
  return RG_OK;
}

void strategy_host::complete_later(const rg_op& op, std::uint64_t ns, std::uint64_t bytes) {
  const std::uint64_t end = now() + ns;
  if (setup_.work.begun) setup_.work.begun(ns, end);
  timers_.add(end, op.cookie, bytes);
}

} // namespace regatta

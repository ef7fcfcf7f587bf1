// SPDX-License-Identifier: Apache-2.0
//
// Executes the operations that a strategy submits: checks them, and passes them to the transport, the optimizer or the
// sparse tables; local_operations has the others.
#include "runtime/strategy_host.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <regatta/operation_names.hpp>
#include <regatta/plugin.hpp>

namespace regatta {

template <class Op> rg_status strategy_host::rows(const Op& o) {
  return operations_.complete_work(o.op, updates_->measure(is_server(o.role), [&] { return tables_->operate(o); }));
}

// Executes an operation, and records those of the engine's own; `transfers` records messages.
rg_status strategy_host::submit(const rg_op& op) {
  trace_recorder* const trace = setup_.trace;
  if (!trace || !trace->on() || op.kind <= RG_OP_BARRIER || op.kind == RG_OP_TIMER) return execute(op);
  const std::uint64_t begin = operations_.now(), busy_until = operations_.works_until();
  const rg_status status = execute(op);
  const bool in_turn = operations_.works_until() > busy_until; // under a virtual clock: it ends later
  const bool updates = op.kind == RG_OP_APPLY || op.kind == RG_OP_COMMIT || op.kind == RG_OP_ROWS_APPLY;
  const bool server = op.kind == RG_OP_APPLY && typed<rg_op_apply>(op).role == RG_ROLE_SERVER;
  trace->span(event_origin::loop, server ? "apply as server" : rg::operation_name(op.kind),
              updates ? "update" : "operation", in_turn ? std::max(begin, busy_until) : begin,
              in_turn ? operations_.works_until() : operations_.now());
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
  case RG_OP_GATHER_ROWS:
  case RG_OP_SCATTER_ROWS: return operations_.complete_work(op, tables_->operate(typed<rg_op_copy_rows>(op)));
  case RG_OP_APPLY: return apply(typed<rg_op_apply>(op));
  case RG_OP_NORM: return norm(typed<rg_op_norm>(op));
  case RG_OP_COMMIT: return commit(typed<rg_op_commit>(op));
  case RG_OP_ROWS_READ: return rows(typed<rg_op_rows_read>(op));
  case RG_OP_ROWS_ADD: return rows(typed<rg_op_rows_add>(op));
  case RG_OP_ROWS_APPLY: return rows(typed<rg_op_rows_apply>(op));
  case RG_OP_ROWS_WRITE: return rows(typed<rg_op_rows_write>(op));
  default: return operations_.execute(op);
  }
}

bool strategy_host::transport_reaches(const rg_buffer& b) const {
  return !device_ || regions_.on_device(b) || (setup_.transport.caps.memory & RG_MEMORY_HOST);
}

constexpr const char* out_of_reach =
    "the buffer is in host memory, which this transport cannot reach: take alloc() for it, or run over shm or tcp";

bool strategy_host::talks_to(std::uint32_t peer) {
  if (peer == setup_.cluster.rank || !setup_.strategy->talks) return true;
  if (talks_.empty()) talks_.resize(setup_.cluster.size);
  if (!talks_[peer]) {
    rg_cluster all = setup_.cluster; // as talks() sees it: a view of no rank
    all.rank = UINT32_MAX;
    all.worker = all.server = -1;
    all.flags = arena_.table_count ? RG_HOST_TABLES : 0;
    const auto [a, b] = std::minmax(peer, setup_.cluster.rank);
    talks_[peer] = setup_.strategy->talks(setup_.values, &all, a, b) != 0;
  }
  return *talks_[peer];
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
  operations_.accept(o.op, {{"the buffer", b}});
  if (o.peer != setup_.cluster.rank && !transport_reaches(b)) refuse_operation(o.op, out_of_reach);
  if (o.peer >= setup_.cluster.size || o.lane >= setup_.lanes)
    refuse_call(fmt::format("a transfer with rank {} on lane {}: there are {} ranks and {} lanes", o.peer, o.lane,
                            setup_.cluster.size, setup_.lanes));
  if (!talks_to(o.peer))
    refuse_call(fmt::format("a transfer with rank {}: talks({}, {}) says that these ranks exchange no message; it must "
                            "return 1 for them",
                            o.peer, std::min(o.peer, setup_.cluster.rank), std::max(o.peer, setup_.cluster.rank)));
  const bool add = o.flags & RG_OP_ADD;
  if (add && b.type != RG_F32 && b.type != RG_F64) refuse_call("a receive that adds is of RG_F32 or RG_F64");
  if (o.wire && o.wire != RG_F32 && (b.type != RG_F32 || (o.wire != RG_F16 && o.wire != RG_BF16)))
    refuse_call("a transfer converts RG_F32 to RG_F16 or RG_BF16, nothing else");
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
  if (group == groups_.end()) refuse_operation(o.op, fmt::format("group {} is not from split()", o.group));
  if (const char* wrong = error_in(o, *group)) refuse_operation(o.op, wrong);
  const auto [source, target] = buffers_of(o, *group);
  const rg_buffer* any = source ? source : target;
  if (!offers(o.op.kind, o.reduction, any ? any->type : std::uint32_t{RG_U8}, o.wire))
    refuse_operation(o.op, "the transport has none of this type, reduction and wire type");
  if (any) {
    const rg_buffer& other = target ? *target : *any;
    operations_.accept(o.op, {{"the source", *any}, {"the target", other}});
    if (!transport_reaches(*any)) refuse_operation(o.op, out_of_reach);
  }
  transfers_.collective(o, collectives_.begin, source, target);
  return RG_OK;
}

bool strategy_host::offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const {
  return collectives_.begin && collectives_.offers(setup_.transport.self, kind, reduction, type, wire);
}

rg_status strategy_host::apply(const rg_op_apply& o) {
  operations_.accept(o.op, {{"the gradient", o.gradient, RG_F32}});
  if (device_ && !regions_.on_device(o.gradient)) refuse_operation(o.op, "the gradient is not where the weights are");
  const bool server = is_server(o.role);
  if (!regions_.ghosts())
    updates_->measure(server,
                      [&] { updates_->apply(server, o.first, regions_.elements<const float>(o.gradient), o.step); });
  return operations_.complete_work(o.op,
                                   bytes_of(o.gradient) * 5); // reads and writes weights and state, reads the gradient
}

void strategy_host::accept_norm(const rg_op& op, const rg_buffer& pair) {
  operations_.accept(op, {{"the norm", pair, RG_F64}});
  if (pair.count != 2) refuse_operation(op, "the norm has two elements");
  if (device_ && !regions_.on_device(pair)) refuse_operation(op, "the norm is not where the weights are");
}

rg_status strategy_host::norm(const rg_op_norm& o) {
  accept_norm(o.op, o.target);
  const bool server = is_server(o.role);
  if (auto* const pair = static_cast<double*>(regions_.address(o.target)))
    updates_->measure(server, [&] {
      updates_->role(server).partial(pair);
      add_norm_of_rows(server, pair);
    });
  return operations_.complete_work(o.op, 0);
}

rg_status strategy_host::commit(const rg_op_commit& o) {
  accept_norm(o.op, o.total);
  const bool server = is_server(o.role);
  const auto* const pair = static_cast<const double*>(regions_.address(o.total));
  // The host needs the norm, to know how much to clip or whether to skip the update.
  if (device_) {
    auto seen = operations_.pinned_pair();
    device_->copy(seen.get(), pair, 2 * sizeof(double));
    operations_.complete_on_device(o, std::move(seen));
    return RG_OK;
  }
  if (pair) commit(server, pair, o.step);
  return operations_.complete_work(o.op, 0);
}

void strategy_host::add_norm_of_rows(bool server, double* pair) {
  if (tables_->windows().empty()) return;
  const auto rows = tables_->partial(server);
  double mine[] = {static_cast<double>(rows.not_finite), rows.sum_of_squares};
  auto w = work_on(2);
  w.factor = 1;
  w.kind = RG_OP_AXPY;
  w.type = w.source_type = RG_F64;
  w.target = pair;
  w.source = mine;
  if (device_) w.source = std::memcpy(norm_of_rows_[server].get(), mine, sizeof mine);
  operations_.of_arena().run(w);
}

void strategy_host::commit(bool server, const double* total, std::uint64_t step) {
  updates_->measure(server, [&] {
    updates_->commit(server, {total[0], total[1]}, step);
    tables_->commit(server, {total[0], total[1]}, step);
  });
}

} // namespace regatta

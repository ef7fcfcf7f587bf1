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
#include <regatta/plugin.hpp>

namespace regatta {

rg_status strategy_host::refuse(const std::string& why) {
  return plugin_host_.c()->fail(plugin_host_.c()->context, RG_E_PLUGIN, why.c_str());
}

std::uint64_t strategy_host::now() const {
  return transport_.now && (setup_.transport.caps.flags & RG_CAP_VIRTUAL) ? transport_.now(setup_.transport.self)
                                                                          : rg::now_ns();
}

rg_status strategy_host::submit(const rg_op& op) {
  if (device_ && !in_one_memory(op)) return refuse("an operation names both the host's memory and a device's");
  switch (op.kind) {
  case RG_OP_SEND:
  case RG_OP_RECV:
  case RG_OP_ALL_REDUCE:
  case RG_OP_REDUCE_SCATTER:
  case RG_OP_ALL_GATHER:
  case RG_OP_BROADCAST: return transfer(op);
  case RG_OP_FILL:
  case RG_OP_COPY:
  case RG_OP_AXPY:
  case RG_OP_SCALE:
  case RG_OP_CLIP:
  case RG_OP_ACCUMULATE: return arithmetic(op);
  case RG_OP_CONVERT: return convert(op);
  case RG_OP_TOP_K:
  case RG_OP_SELECT: return select(op);
  case RG_OP_APPLY:
  case RG_OP_NORM:
  case RG_OP_COMMIT: return update(op);
  case RG_OP_ROWS_READ:
  case RG_OP_ROWS_ADD:
  case RG_OP_ROWS_APPLY:
  case RG_OP_ROWS_WRITE:
  case RG_OP_GATHER:
  case RG_OP_SCATTER: return rows(op);
  case RG_OP_TIMER: complete_later(op, static_cast<std::uint64_t>(std::max(0.0, op.a)), 0); return RG_OK;
  default: return refuse(fmt::format("operation {} is unknown to this engine", op.kind));
  }
}

rg_status strategy_host::transfer(const rg_op& op) {
  const rg_buffer& b = op.kind == RG_OP_SEND ? op.source : op.target;
  if (!regions_.contains(b)) return refuse("a transfer names memory outside its region");
  const bool crosses = (op.kind != RG_OP_SEND && op.kind != RG_OP_RECV) || op.peer != cluster_.rank;
  if (device_ && crosses && !regions_.on_device(b) && !(setup_.transport.caps.memory & RG_MEMORY_HOST))
    return refuse("a transfer names the host's memory, which this transport cannot reach: take alloc() for it, or run "
                  "over shm or tcp");
  wait_for_inputs(op);
  if (op.kind != RG_OP_SEND && op.kind != RG_OP_RECV) return collective(op);
  if (op.peer >= cluster_.size || op.lane >= setup_.lanes)
    return refuse(fmt::format("a transfer with rank {} on lane {}: there are {} ranks and {} lanes", op.peer, op.lane,
                              cluster_.size, setup_.lanes));
  const bool add = op.flags & RG_OP_ADD;
  if (add && b.type != RG_F32 && b.type != RG_F64) return refuse("a receive that adds is of RG_F32 or RG_F64");
  if (op.wire && op.wire != RG_F32 && (b.type != RG_F32 || (op.wire != RG_F16 && op.wire != RG_BF16)))
    return refuse("a transfer converts RG_F32 to RG_F16 or RG_BF16, nothing else");
  const std::uint32_t wire = op.wire == RG_F32 ? 0 : op.wire;
  if (op.kind == RG_OP_SEND)
    transfers_.send(op.cookie, op.peer, op.lane, b, wire);
  else
    transfers_.recv(op.cookie, op.peer, op.lane, b, add, wire);
  return RG_OK;
}

rg_status strategy_host::collective(const rg_op& op) {
  const auto [function, name] = native(op.kind);
  if (!function) return refuse(fmt::format("{}: the transport has none", name));
  const bool sums = op.kind == RG_OP_ALL_REDUCE || op.kind == RG_OP_REDUCE_SCATTER;
  if (sums && op.target.type != RG_F32) return refuse(fmt::format("{}: expected elements of type RG_F32", name));
  transfers_.collective(op.cookie, function, op.group, op.peer, op.target);
  return RG_OK;
}

std::pair<transfers::collective_function, const char*> strategy_host::native(std::uint32_t kind) const {
  switch (kind) {
  case RG_OP_ALL_REDUCE: return {collectives_.all_reduce, "all-reduce"};
  case RG_OP_REDUCE_SCATTER: return {collectives_.reduce_scatter, "reduce-scatter"};
  case RG_OP_ALL_GATHER: return {collectives_.all_gather, "all-gather"};
  default: return {collectives_.broadcast, "broadcast"};
  }
}

rg_status strategy_host::update(const rg_op& op) {
  wait_for_inputs(op);
  return op.kind == RG_OP_APPLY ? apply(op) : norm_or_commit(op);
}

rg_status strategy_host::apply(const rg_op& op) {
  const bool as_server = op.flags & RG_OP_AS_SERVER;
  if (!regions_.contains(op.source) || op.source.type != RG_F32)
    return refuse("apply: the gradient is no buffer of RG_F32");
  if (device_ && !regions_.on_device(op.source)) return refuse("apply: the gradient is not where the weights are");
  if (!regions_.ghosts())
    updates_->measure(
        as_server, [&] { updates_->apply(as_server, op.first, regions_.elements<const float>(op.source), op.step); });
  // reads and writes weights and state, reads the gradient
  return complete_work(op, op.source.count * sizeof(float) * 5);
}

rg_status strategy_host::norm_or_commit(const rg_op& op) {
  const bool as_server = op.flags & RG_OP_AS_SERVER;
  const rg_buffer& b = op.kind == RG_OP_NORM ? op.target : op.source;
  if (!regions_.contains(b) || b.type != RG_F64 || b.count != 2) return refuse("norm, commit: two elements of RG_F64");
  if (device_ && !regions_.on_device(b)) return refuse("norm, commit: not where the weights are");
  auto* const pair = static_cast<double*>(regions_.address(b));
  // The host needs the norm, to know how much to clip or whether to skip the update.
  if (op.kind == RG_OP_COMMIT && device_) {
    auto seen = device_operations_.pinned_pair();
    device_->copy(seen.get(), pair, 2 * sizeof(double));
    device_operations_.add(op, std::move(seen));
    return RG_OK;
  }
  if (pair && op.kind == RG_OP_COMMIT) {
    commit(op, pair);
  } else if (pair) {
    updates_->measure(as_server, [&] {
      updates_->role(as_server).partial(pair);
      add_norm_of_rows(as_server, pair);
    });
  }
  return complete_work(op, 0);
}

void strategy_host::add_norm_of_rows(bool as_server, double* pair) {
  if (tables_->windows().empty()) return;
  const auto rows = tables_->partial(as_server);
  double mine[] = {static_cast<double>(rows.not_finite), rows.sum_of_squares};
  auto w = rg::make_versioned<rg_work>();
  w.kind = RG_OP_AXPY;
  w.type = w.source_type = RG_F64;
  w.target = pair;
  w.source = mine;
  w.count = 2;
  w.a = 1;
  if (device_) w.source = std::memcpy(norm_of_rows_[as_server].get(), mine, sizeof mine);
  processor_.run(w);
}

void strategy_host::commit(const rg_op& op, const double* total) {
  const bool as_server = op.flags & RG_OP_AS_SERVER;
  updates_->measure(as_server, [&] {
    updates_->commit(as_server, {total[0], total[1]}, op.step);
    tables_->commit(as_server, {total[0], total[1]}, op.step);
  });
}

rg_status strategy_host::rows(const rg_op& op) {
  for (const rg_buffer* b : {&op.target, &op.source, &op.index})
    if (regions_.on_device(*b)) return refuse("operations on rows are in the host's memory only");
  const bool moves = op.kind == RG_OP_GATHER || op.kind == RG_OP_SCATTER; // everything else is part of an update
  const auto operate = [&] { return tables_->operate(op); };
  return complete_work(op, moves ? operate() : updates_->measure((op.flags & RG_OP_AS_SERVER) != 0, operate));
}

rg_status strategy_host::complete_work(const rg_op& op, std::uint64_t bytes) {
  if (!(setup_.transport.caps.flags & RG_CAP_VIRTUAL)) return RG_DONE;
  complete_later(op, virtual_ns(bytes), 0);
  return RG_OK;
}

void strategy_host::complete_later(const rg_op& op, std::uint64_t ns, std::uint64_t bytes) {
  timers_.add(now() + ns, op.cookie, bytes);
}

} // namespace regatta

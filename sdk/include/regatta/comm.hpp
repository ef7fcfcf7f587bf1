// SPDX-License-Identifier: Apache-2.0
//
// What a strategy can do: rg::comm, its memory, messages, collectives and arithmetic on the rank's loop.
#pragma once

#include <regatta/plugin.hpp>
#include <regatta/task.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace rg {

// A part of the arena: elements [first, first + count).
struct span_of_arena {
  std::uint64_t first, count;
  std::uint64_t end() const { return first + count; }
};

// Part `index` of `parts` equal ones, cut at multiples of 16 elements (a cache line of fp32), so that no two parts
// share one; the last ones may be shorter or empty.
inline span_of_arena part_of(span_of_arena whole, std::uint64_t index, std::uint64_t parts) {
  const std::uint64_t lines = (whole.count + 15) / 16;
  const std::uint64_t from = std::min(whole.count, lines * index / parts * 16);
  const std::uint64_t to = std::min(whole.count, lines * (index + 1) / parts * 16);
  return {whole.first + from, to - from};
}

// [from, from + count) of a buffer.
inline rg_buffer sub(rg_buffer b, std::uint64_t from, std::uint64_t count) {
  b.offset += from * size_of(b.type);
  b.count = count;
  return b;
}

// The rows that a step touches: [table] gives their numbers, unique and ascending, valid until the step's end.
class step_rows {
public:
  step_rows() = default;
  step_rows(const rg_rows* first, std::uint32_t tables) : first_(first), tables_(tables) {}
  std::uint32_t size() const { return tables_; }
  std::span<const std::uint64_t> operator[](std::uint32_t table) const {
    const rg_rows r = copy_versioned(at_stride(first_, table));
    return {r.rows, r.count};
  }

private:
  const rg_rows* first_ = nullptr;
  std::uint32_t tables_ = 0;
};

// In which of its roles a rank holds something.
enum class role : std::uint32_t { worker = 0, server = RG_OP_AS_SERVER };

// rg_type of a parameter `wire`: "fp32" (0: as in memory), "bf16", "fp16".
inline std::uint32_t wire_type(std::string_view name) {
  return name == "bf16" ? RG_BF16 : name == "fp16" ? RG_F16 : 0;
}

class comm;

namespace detail {
// What outlives the coroutine that asked: a frame may be destroyed while the operation still borrows a buffer.
struct operation_record {
  comm* owner = nullptr;
  std::coroutine_handle<> waiter;
  rg_status status = RG_OK;
  std::uint64_t bytes = 0;
  bool done = false, detached = false;
  operation_record* next = nullptr;
};
} // namespace detail

// Something under way. It was begun when this was made; co_await waits for its end, gives the bytes of payload
// (receives) and throws rg::error if it failed. Destroying it lets the operation run on.
class [[nodiscard]] operation {
public:
  operation() = default;
  explicit operation(detail::operation_record* r) : record_(r) {}
  operation(operation&& o) noexcept : record_(std::exchange(o.record_, nullptr)) {}
  operation& operator=(operation&& o) noexcept {
    std::swap(record_, o.record_);
    return *this;
  }
  inline ~operation();

  bool await_ready() const noexcept { return !record_ || record_->done; }
  // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): the analyser does not know that this follows await_ready
  void await_suspend(std::coroutine_handle<> h) noexcept { record_->waiter = h; }
  inline std::uint64_t await_resume();

private:
  detail::operation_record* record_ = nullptr; // null: it was finished at once
};

// All that a strategy can do. One per instance; made by the SDK.
class comm : public frame_pool_user {
public:
  explicit comm(const rg_strategy_host* host) : host_(host), cluster_(host->cluster), arena_(host->arena) {}

  // Who is there.
  const rg_cluster& cluster() const { return *cluster_; }
  std::uint32_t rank() const { return cluster_->rank; }
  std::uint32_t workers() const { return cluster_->workers; }
  std::uint32_t servers() const { return cluster_->servers; }
  bool is_worker() const { return cluster_->worker >= 0; }
  bool is_server() const { return cluster_->server >= 0; }
  std::uint32_t server_rank(std::uint32_t server) const { return cluster_->server_rank[server]; }

  // What is trained.
  const rg_arena& arena() const { return *arena_; }
  span_of_arena whole() const { return {0, arena_->count}; }
  rg_buffer weights(span_of_arena s) const { return sub(arena_->weights, s.first, s.count); }
  rg_buffer gradients(span_of_arena s) const { return sub(arena_->gradients, s.first, s.count); }
  // Its sparse tables, and rows first .. first + count of a table's windows.
  std::uint32_t tables() const { return arena_->table_count; }
  rg_table table(std::uint32_t t) const { return copy_versioned(at_stride(arena_->tables, t)); }
  rg_buffer row_numbers(std::uint32_t t, std::uint64_t first, std::uint64_t count) const {
    return sub(table(t).numbers, first, count);
  }
  rg_buffer row_weights(std::uint32_t t, std::uint64_t first, std::uint64_t count) const {
    return sub(table(t).weights, first * table(t).row, count * table(t).row);
  }
  rg_buffer row_gradients(std::uint32_t t, std::uint64_t first, std::uint64_t count) const {
    return sub(table(t).gradients, first * table(t).row, count * table(t).row);
  }
  rg_tensor tensor_of(const rg_slice& slice) const { return copy_versioned(at_stride(arena_->tensors, slice.tensor)); }
  // Updates wait for commit(): the sum of all owners' norm() is needed first.
  bool deferred() const { return host_->flags & RG_HOST_DEFERRED; }

  // Set-up, in the constructor only.
  rg_buffer alloc(std::uint64_t count, std::uint32_t type = RG_F32) {
    rg_buffer b{};
    check(host_->alloc(host_->context, type, count, &b), "alloc");
    return b;
  }
  // Of the host's memory wherever the arena is: for the numbers of rows, and what goes with them.
  rg_buffer alloc_on_host(std::uint64_t count, std::uint32_t type = RG_F32) {
    const bool there = host_->struct_size > offsetof(rg_strategy_host, alloc_on_host) && host_->alloc_on_host;
    if (!there) return alloc(count, type);
    rg_buffer b{};
    check(host_->alloc_on_host(host_->context, type, count, &b), "alloc_on_host");
    return b;
  }
  rg_buffer own_as_worker(span_of_arena s) { return own(0, s); }
  rg_buffer own_as_server(span_of_arena s) { return own(1, s); }
  // This rank holds the rows r of table t with r mod shards == shard.
  void own_rows(std::uint32_t t, role as, std::uint64_t shards = 1, std::uint64_t shard = 0) {
    check(host_->own_rows ? host_->own_rows(host_->context, as == role::server, t, shards, shard) : RG_E_UNSUPPORTED,
          "own_rows");
  }
  // Memory behind a buffer of the host's, for code of the strategy's own; throws where there is none (ghosts, devices).
  template <class T> std::span<T> elements(rg_buffer b) const {
    void* p = nullptr;
    if (b.count)
      check(host_->pointer ? host_->pointer(host_->context, &b, &p) : rg_status{RG_E_UNSUPPORTED}, "pointer");
    return {static_cast<T*>(p), b.count};
  }
  // on_gradient is to be called when the arena is full up to each of these; ascending, the last is its end.
  void set_buckets(std::span<const std::uint64_t> ends) {
    check(host_->buckets(host_->context, ends.data(), static_cast<std::uint32_t>(ends.size())), "buckets");
  }
  // Cuts the arena into buckets of `bytes` at most; returns them in order.
  std::vector<span_of_arena> make_buckets(std::uint64_t bytes) {
    const std::uint64_t size = std::max<std::uint64_t>(16, bytes / 64 * 16);
    std::vector<span_of_arena> buckets;
    std::vector<std::uint64_t> ends;
    for (std::uint64_t first = 0; first < arena_->count; first += size) {
      buckets.push_back({first, std::min(size, arena_->count - first)});
      ends.push_back(buckets.back().end());
    }
    set_buckets(ends);
    return buckets;
  }
  // A group for all_reduce and what else offers() has; none where the transport has no collectives.
  std::optional<std::uint32_t> split(std::span<const std::uint32_t> members) {
    std::uint32_t group = 0;
    const rg_status s =
        host_->split(host_->context, members.data(), static_cast<std::uint32_t>(members.size()), &group);
    if (s == RG_E_UNSUPPORTED) return std::nullopt;
    check(s, "split");
    return group;
  }

  // Transfers. Buffers are borrowed until the end.
  // `wire`: RG_F16 or RG_BF16 where fp32 is to cross as that, the same on both sides; 0: as it lies in memory.
  operation send(std::uint32_t peer, rg_buffer source, std::uint32_t lane = 0, std::uint32_t wire = 0) {
    rg_op op = make(RG_OP_SEND);
    op.peer = peer;
    op.lane = lane;
    op.source = source;
    op.wire = wire;
    return submit(op);
  }
  operation recv(std::uint32_t peer, rg_buffer target, std::uint32_t lane = 0, std::uint32_t wire = 0) {
    return receive(peer, target, lane, wire, 0);
  }
  // Adds what comes to what is there.
  operation recv_add(std::uint32_t peer, rg_buffer target, std::uint32_t lane = 0, std::uint32_t wire = 0) {
    return receive(peer, target, lane, wire, RG_OP_ADD);
  }
  // Over a group of split(), as far as the transport offers() them. Shares are those of part_of({0, target.count}, place
  // among the members, number of members).
  bool offers(rg_op_kind kind) const {
    return host_->struct_size > offsetof(rg_strategy_host, native) && (host_->native >> kind & 1);
  }
  operation all_reduce(std::uint32_t group, rg_buffer target) { return collective(RG_OP_ALL_REDUCE, group, target, 0); }
  operation reduce_scatter(std::uint32_t group, rg_buffer target) {
    return collective(RG_OP_REDUCE_SCATTER, group, target, 0);
  }
  operation all_gather(std::uint32_t group, rg_buffer target) { return collective(RG_OP_ALL_GATHER, group, target, 0); }
  // `root`: its place among the members.
  operation broadcast(std::uint32_t group, rg_buffer target, std::uint32_t root) {
    return collective(RG_OP_BROADCAST, group, target, root);
  }

  // Arithmetic, where the memory lives.
  operation fill(rg_buffer target, double value) { return arithmetic(RG_OP_FILL, target, {}, value); }
  operation copy(rg_buffer target, rg_buffer source) { return arithmetic(RG_OP_COPY, target, source, 0); }
  operation axpy(rg_buffer target, double a, rg_buffer source) { return arithmetic(RG_OP_AXPY, target, source, a); }
  operation scale(rg_buffer target, double a) { return arithmetic(RG_OP_SCALE, target, {}, a); }
  operation clip(rg_buffer target, double norm) { return arithmetic(RG_OP_CLIP, target, {}, norm); }
  // u = a * u + g, then v += u.
  operation accumulate(rg_buffer u, double a, rg_buffer g, rg_buffer v) {
    return arithmetic(RG_OP_ACCUMULATE, u, g, a, v);
  }
  // What is left of `target` after a way over the wire as `wire`; nothing to do for 0.
  operation round(rg_buffer target, std::uint32_t wire) {
    if (!wire) return operation();
    rg_op op = make(RG_OP_CONVERT);
    op.target = op.source = target;
    op.wire = wire;
    return submit(op);
  }
  // Only the elements of `target` that `index` (RG_I32) names.
  operation fill_at(rg_buffer target, rg_buffer index, double value) {
    return arithmetic(RG_OP_FILL, target, {}, value, index);
  }
  operation axpy_at(rg_buffer target, rg_buffer index, double a, rg_buffer source) {
    return arithmetic(RG_OP_AXPY, target, source, a, index);
  }
  // The values.count elements of `source` of largest magnitude, by ascending place.
  operation top_k(rg_buffer source, rg_buffer index, rg_buffer values) {
    return arithmetic(RG_OP_TOP_K, values, source, 0, index);
  }
  // All with a magnitude above `threshold`; gives the bytes of the values found.
  operation select(rg_buffer source, double threshold, rg_buffer index, rg_buffer values) {
    return arithmetic(RG_OP_SELECT, values, source, threshold, index);
  }

  // The optimiser, on what this rank owns: `gradient` is that of elements first .. first + gradient.count.
  operation apply_as_worker(std::uint64_t first, rg_buffer gradient, std::uint64_t step) {
    return apply(first, gradient, step, 0);
  }
  operation apply_as_server(std::uint64_t first, rg_buffer gradient, std::uint64_t step) {
    return apply(first, gradient, step, RG_OP_AS_SERVER);
  }
  // target: 2 x RG_F64.
  operation norm(rg_buffer target, bool as_server) {
    rg_op op = make(RG_OP_NORM);
    op.flags = as_server ? RG_OP_AS_SERVER : 0;
    op.target = target;
    return submit(op);
  }
  operation commit(rg_buffer total, std::uint64_t step, bool as_server) {
    rg_op op = make(RG_OP_COMMIT);
    op.flags = as_server ? RG_OP_AS_SERVER : 0;
    op.source = total;
    op.step = step;
    return submit(op);
  }

  // Sparse tables, on rows of table t that this rank holds as `as`: n numbers (RG_I64), values of [n, row]. abi.h says
  // more at RG_OP_ROWS_READ.
  operation rows_read(std::uint32_t t, rg_buffer numbers, rg_buffer target, role as) {
    return on_rows(RG_OP_ROWS_READ, t, numbers, target, {}, as, 0, 0);
  }
  // The `count` rows of a step, all held as a worker, for the model alone: which sees them where they lie if it can.
  operation rows_show(std::uint32_t t, std::uint64_t count) {
    return on_rows(RG_OP_ROWS_READ, t, row_numbers(t, 0, count), row_weights(t, 0, count), {}, role::worker, 0, 0,
                   RG_OP_SHOW);
  }
  operation rows_add(std::uint32_t t, rg_buffer numbers, rg_buffer gradients, role as) {
    return on_rows(RG_OP_ROWS_ADD, t, numbers, {}, gradients, as, 0, 0);
  }
  // What was added; or these gradients at once.
  operation rows_apply(std::uint32_t t, std::uint64_t step, role as) {
    return on_rows(RG_OP_ROWS_APPLY, t, {}, {}, {}, as, step, 0);
  }
  operation rows_apply(std::uint32_t t, rg_buffer numbers, rg_buffer gradients, std::uint64_t step, role as) {
    return on_rows(RG_OP_ROWS_APPLY, t, numbers, {}, gradients, as, step, 0);
  }
  operation rows_write(std::uint32_t t, rg_buffer numbers, double a, rg_buffer source, role as) {
    return on_rows(RG_OP_ROWS_WRITE, t, numbers, {}, source, as, 0, a);
  }
  // target[i] = source[index[i]], and target[index[i]] = (or +=) source[i], in rows as long as the listed side's.
  operation gather(rg_buffer target, rg_buffer source, rg_buffer index) {
    return on_rows(RG_OP_GATHER, 0, index, target, source, role::worker, 0, 0);
  }
  operation scatter(rg_buffer target, rg_buffer index, rg_buffer source) {
    return on_rows(RG_OP_SCATTER, 0, index, target, source, role::worker, 0, 0);
  }

  operation after(std::uint64_t ns) { return arithmetic(RG_OP_TIMER, {}, {}, static_cast<double>(ns)); }
  std::uint64_t now() const { return host_->now(host_->context); }

  // The optimiser's coefficient, for a strategy with RG_PLAN_MOMENTUM.
  double momentum() const { return host_->momentum; }
  // Within end_step and after: the model may read the weights from `first` on; 0: all (abi.h, weights_from).
  void weights_from(std::uint64_t first) {
    if (host_->weights_from) host_->weights_from(host_->context, first);
  }
  // Shown in the result under "strategy": how often each value was seen; sums, a step.
  void record_value(const char* name, std::int64_t value) {
    if (host_->record_value) host_->record_value(host_->context, name, value);
  }
  // Of a value that belongs to step `step` of worker `worker`: shown only if that step counts.
  void record_of_step(const char* name, std::int64_t value, std::uint32_t worker, std::uint64_t step) {
    if (host_->struct_size > offsetof(rg_strategy_host, record_of_step) && host_->record_of_step)
      host_->record_of_step(host_->context, name, value, worker, step);
    else
      record_value(name, value);
  }
  void record_sum(const char* name, double amount) {
    if (host_->record_sum) host_->record_sum(host_->context, name, amount);
  }

  // Memory behind a buffer, for host code; null for ghosts, on devices, and where there is none.
  template <class T> T* pointer(rg_buffer b) const {
    void* p = nullptr;
    if (!b.count || !host_->pointer || host_->pointer(host_->context, &b, &p) != RG_OK) return nullptr;
    return static_cast<T*>(p);
  }
  // A line for the user, shown with the result.
  void warn(const std::string& text) { host_->host->log(host_->host->context, RG_LOG_WARNING, text.c_str()); }

  const rg_strategy_host* host() const { return host_; }

  // Called by the SDK: what was submitted has ended.
  void completed(const rg_completion* c, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      auto* r = reinterpret_cast<detail::operation_record*>(static_cast<std::uintptr_t>(c[i].cookie));
      r->done = true;
      r->status = c[i].status;
      r->bytes = c[i].bytes;
      if (r->detached)
        recycle(r);
      else if (r->waiter)
        std::exchange(r->waiter, {}).resume();
    }
  }
  void recycle(detail::operation_record* r) noexcept {
    r->next = free_;
    free_ = r;
  }

private:
  rg_op make(std::uint32_t kind) const {
    rg_op op = blank_;
    op.kind = kind;
    return op;
  }
  operation receive(std::uint32_t peer, rg_buffer target, std::uint32_t lane, std::uint32_t wire, std::uint32_t flags) {
    rg_op op = make(RG_OP_RECV);
    op.peer = peer;
    op.lane = lane;
    op.target = target;
    op.wire = wire;
    op.flags = flags;
    return submit(op);
  }
  operation collective(std::uint32_t kind, std::uint32_t group, rg_buffer target, std::uint32_t root) {
    rg_op op = make(kind);
    op.group = group;
    op.target = target;
    op.peer = root;
    return submit(op);
  }
  operation arithmetic(std::uint32_t kind, rg_buffer target, rg_buffer source, double a, rg_buffer index = {}) {
    rg_op op = make(kind);
    op.target = target;
    op.source = source;
    op.index = index;
    op.a = a;
    return submit(op);
  }
  operation on_rows(std::uint32_t kind, std::uint32_t t, rg_buffer index, rg_buffer target, rg_buffer source, role as,
                    std::uint64_t step, double a, std::uint32_t flags = 0) {
    rg_op op = make(kind);
    op.flags = static_cast<std::uint32_t>(as) | flags;
    op.table = t;
    op.index = index;
    op.target = target;
    op.source = source;
    op.step = step;
    op.a = a;
    return submit(op);
  }
  operation apply(std::uint64_t first, rg_buffer gradient, std::uint64_t step, std::uint32_t flags) {
    if (!gradient.count) return {}; // a model of tables alone has nothing dense
    rg_op op = make(RG_OP_APPLY);
    op.flags = flags;
    op.first = first;
    op.source = gradient;
    op.step = step;
    return submit(op);
  }
  rg_buffer own(std::uint32_t as_server, span_of_arena s) {
    rg_buffer b{};
    if (!s.count) return b;
    check(host_->own(host_->context, as_server, s.first, s.count, &b), "own");
    return b;
  }
  static void check(rg_status s, const char* what) {
    if (s == RG_E_PLUGIN) throw error(s, ""); // the engine has said why; a text would replace its own
    if (s < 0) throw error(s, std::string("the engine refused ") + what);
  }
  operation submit(rg_op& op) {
    detail::operation_record* r = free_;
    if (r) {
      free_ = r->next;
      *r = {};
    } else {
      records_.push_back(std::make_unique<detail::operation_record>());
      r = records_.back().get();
    }
    r->owner = this;
    op.cookie = reinterpret_cast<std::uintptr_t>(r);
    const rg_status s = host_->submit(host_->context, &op);
    if (s == RG_OK) return operation(r);
    recycle(r);
    check(s, "an operation");
    return operation();
  }

  const rg_strategy_host* host_;
  const rg_cluster* cluster_;
  const rg_arena* arena_;
  // Copied for every operation: g++ zeroes as many bytes by `rep stos`, which takes longer than all else of a submit.
  const rg_op blank_ = make_versioned<rg_op>();
  std::vector<std::unique_ptr<detail::operation_record>> records_;
  detail::operation_record* free_ = nullptr;
};

inline operation::~operation() {
  if (!record_) return;
  if (record_->done) {
    record_->owner->recycle(record_);
  } else {
    record_->detached = true;
    record_->waiter = {};
  }
}
inline std::uint64_t operation::await_resume() {
  if (!record_) return 0;
  const rg_status s = record_->status;
  const std::uint64_t bytes = record_->bytes;
  record_->owner->recycle(std::exchange(record_, nullptr));
  if (s < 0)
    throw error(s, s == RG_E_PEER ? "a peer is gone" : s == RG_E_CANCELLED ? "cancelled" : "a transfer failed");
  return bytes;
}

} // namespace rg

// SPDX-License-Identifier: Apache-2.0
//
// rg::comm, through which a strategy allocates memory, sends messages, and runs collectives, arithmetic and the
// optimizer. Everything here is called on the rank's loop, or in the strategy's constructor. All functions throw
// rg::error if the engine refuses the call: a wrong argument is RG_E_PLUGIN. Let it leave the coroutine: it ends the
// run.
#pragma once

#include <regatta/collectives.hpp>
#include <regatta/plugin.hpp>
#include <regatta/task.hpp>
#include <regatta/trace.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rg {

// Elements [first, first + count) of the arena.
struct span_of_arena {
  std::uint64_t first, count;
  std::uint64_t end() const { return first + count; }
};

// Returns part `index`, from 0, when `whole` is cut into `parts` ones that differ by at most 16 elements. Cuts are at
// multiples of 16 elements (a cache line of fp32) from the begin of `whole`, so that no two parts share a cache line.
// If there are more parts than cache lines, some are empty, part 0 among them.
inline span_of_arena part_of(span_of_arena whole, std::uint64_t index, std::uint64_t parts) {
  const chunk part = chunk_of(whole.count, nullptr, index, parts);
  return {whole.first + part.first, part.count};
}

// Returns the peer, below `peers`, to which sender `me` of `senders` sends the message number `i` of those that it sends
// to all of them at once: each sender begins with another peer. If all sent in the same order, their messages would
// meet at the link of one peer after the other, and the others' links would be idle.
inline std::uint32_t staggered(std::uint32_t i, std::uint32_t me, std::uint32_t senders, std::uint32_t peers) {
  const std::uint64_t first = std::uint64_t{me} * peers / senders;
  return static_cast<std::uint32_t>((first + i) % peers);
}

// A group of ranks that call the transport's collectives together; comm::split() creates it.
struct group {
  std::uint32_t id;          // for the engine
  std::uint32_t size, index; // number of members; this rank's index among them
};

// Returns elements [from, from + count) of a buffer, which must have them. In a packed type, `from` must be at a byte.
inline rg_buffer sub(rg_buffer b, std::uint64_t from, std::uint64_t count) {
  b.offset += bytes_of(b.type, from);
  b.count = count;
  return b;
}

// A row-major matrix in the first elements of a buffer: element (i, j) is element i * row + j of it.
struct matrix {
  matrix(rg_buffer of, std::uint64_t row_count, std::uint64_t column_count)
      : elements(of), rows(row_count), columns(column_count), row(column_count) {}
  rg_buffer elements;
  std::uint64_t rows, columns;
  std::uint64_t row;   // elements from one row to the next
  bool across = false; // comm::gemm() multiplies by its transpose; rows and columns are as stored
};
// Returns m with `across` toggled. Moves no elements.
inline matrix transposed(matrix m) {
  m.across = !m.across;
  return m;
}

// The rows that a step touches: [table] returns their row numbers, each once and ascending. Valid until the activity of
// end_step ends; in pull_rows until its own activity ends.
class step_rows {
public:
  step_rows() = default;
  step_rows(const rg_rows* first, std::uint32_t tables) : first_(first), tables_(tables) {}
  std::uint32_t size() const { return tables_; } // number of sparse tables
  std::span<const std::uint64_t> operator[](std::uint32_t table) const {
    const rg_rows r = copy_versioned(at_stride(first_, table));
    return {r.rows, r.count};
  }

private:
  const rg_rows* first_ = nullptr;
  std::uint32_t tables_ = 0;
};

// A rank that is both worker and server owns weights and rows in both roles; an operation names one.
enum class role : std::uint32_t { worker = RG_ROLE_WORKER, server = RG_ROLE_SERVER };

// Returns the wire type for a parameter `wire`: RG_BF16 for "bf16", RG_F16 for "fp16", else 0 ("fp32": the same type as
// in memory).
inline std::uint32_t wire_type(std::string_view name) {
  return name == "bf16" ? RG_BF16 : name == "fp16" ? RG_F16 : 0;
}

// Passes the state that a strategy keeps from step to step to a checkpoint or from one. The strategy names the same
// parts in the same order in both directions. buffer() and value() throw rg::error, RG_E_CONFIG if the checkpoint has
// something else.
class saved_state {
public:
  saved_state(const rg_state* state, std::uint64_t step, bool loads) : state_(state), step_(step), loads_(loads) {}
  std::uint64_t step() const { return step_; } // the next step
  bool loads() const { return loads_; }        // whether values are read from the checkpoint
  void buffer(const char* name, rg_buffer b) { check(state_->buffer(state_->context, name, &b), name); }
  template <class T> void value(const char* name, T& v) {
    static_assert(std::is_trivially_copyable_v<T>, "a value is a number or a struct of numbers");
    check(state_->bytes(state_->context, name, &v, sizeof v), name);
  }

private:
  static void check(rg_status s, const char* name) {
    if (s < 0) throw error(s, std::string("state ") + name + ": the checkpoint does not have it in this form");
  }
  const rg_state* state_;
  std::uint64_t step_;
  bool loads_;
};

class comm;

namespace detail {
// The state of an operation. It outlives the coroutine that began the operation: the coroutine's frame may be destroyed
// while the operation still uses its buffers.
struct operation_record {
  comm* owner = nullptr;
  union {                                // a strategy may have thousands of records
    std::coroutine_handle<> waiter = {}; // until it is done
    std::uint64_t bytes;                 // once it is done
    operation_record* next;              // while no operation uses the record
  };
  rg_status status = RG_OK;
  bool done = false, detached = false;
  bool has_function = false; // it is a function_record
};
struct function_record : operation_record { // of comm::run()
  alignas(std::max_align_t) std::byte function[64];
};
} // namespace detail

// An operation that has been submitted. co_await, at most once, waits for its end and throws rg::error if it failed:
// RG_E_PEER if a peer is gone. It returns the bytes that a receive got, in the type in memory, or that select() found;
// for other operations the number has no meaning. Destroying this object does not cancel the operation, whose buffers
// stay in use. A default-constructed object has ended, with 0 bytes.
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
  detail::operation_record* record_ = nullptr; // null: the operation had ended when submit() returned
};

// The functions that a strategy may call. The SDK creates one comm for each instance of a strategy.
class comm : public frame_pool_user {
public:
  explicit comm(const rg_strategy_host* host)
      : host_(host), cluster_(host->cluster), arena_(host->arena), trace_(host->host) {}

  // The ranks.
  const rg_cluster& cluster() const { return *cluster_; }
  std::uint32_t rank() const { return cluster_->rank; }
  std::uint32_t workers() const { return cluster_->workers; }
  std::uint32_t servers() const { return cluster_->servers; }
  bool is_worker() const { return cluster_->worker >= 0; }
  bool is_server() const { return cluster_->server >= 0; }
  // Returns the server to which this worker sends the message number `i` of those to all servers: staggered().
  std::uint32_t server_in_turn(std::uint32_t i) const { return staggered(i, rank(), workers(), servers()); }
  // Returns the worker to which this server sends the message number `i` of those to all workers: staggered().
  std::uint32_t worker_in_turn(std::uint32_t i) const { return staggered(i, server(), servers(), workers()); }
  std::uint32_t server_rank(std::uint32_t server) const { return cluster_->server_rank[server]; }
  // Returns this rank's number among the servers: undefined on a rank that is no server.
  std::uint32_t server() const { return static_cast<std::uint32_t>(cluster_->server); }

  // The dense weights and their gradients. weights() and gradients() are for workers only.
  const rg_arena& arena() const { return *arena_; }
  span_of_arena whole() const { return {0, arena_->count}; }
  rg_buffer weights(span_of_arena s) const { return sub(arena_->weights, s.first, s.count); }
  rg_buffer gradients(span_of_arena s) const { return sub(arena_->gradients, s.first, s.count); }
  // The sparse tables, and rows [first, first + count) of a table's windows.
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
  // Returns the seed of the run, the same on all ranks, for random numbers (random.hpp).
  std::uint64_t seed() const { return host_->seed; }
  // Returns whether updates wait for commit(), which needs the norm of the whole gradient.
  bool deferred() const { return host_->flags & RG_HOST_DEFERRED; }

  // Set-up: these functions, up to split(), may be called in the strategy's constructor only, except elements().
  // Allocates a zeroed buffer in the memory that holds the arena (host or device). It lives as long as the strategy.
  rg_buffer alloc(std::uint64_t count, std::uint32_t type = RG_F32) {
    rg_buffer b{};
    check(host_->alloc(host_->context, type, count, &b), "alloc");
    return b;
  }
  // As alloc(), but in host memory wherever the arena is: for row numbers and the values of rows.
  rg_buffer alloc_on_host(std::uint64_t count, std::uint32_t type = RG_F32) {
    rg_buffer b{};
    check(host_->alloc_on_host(host_->context, type, count, &b), "alloc_on_host");
    return b;
  }
  // Makes this rank the one that updates these elements, in a role. Returns where their weights are: for a worker a
  // part of the arena, for a server separate memory with their initial values. For an empty span it only returns an
  // empty buffer. In each role, owned spans must not overlap.
  rg_buffer own(span_of_arena s, role as) {
    rg_buffer b{};
    if (!s.count) return b;
    check(host_->own(host_->context, static_cast<std::uint32_t>(as), s.first, s.count, &b), "own");
    return b;
  }
  // Makes this rank the holder of the rows r of table t with r mod shards == shard; once for each table and role.
  void own_rows(std::uint32_t t, role as, std::uint64_t shards = 1, std::uint64_t shard = 0) {
    check(host_->own_rows ? host_->own_rows(host_->context, static_cast<std::uint32_t>(as), t, shards, shard)
                          : RG_E_UNSUPPORTED,
          "own_rows");
  }
  // Returns the elements of a buffer in host memory, for the strategy's own code; T is the buffer's type. Throws
  // rg::error (RG_E_UNSUPPORTED) for ghosts and for buffers on a device. Also after the constructor.
  template <class T> std::span<T> elements(rg_buffer b) const {
    void* p = nullptr;
    if (b.count)
      check(host_->pointer ? host_->pointer(host_->context, &b, &p) : rg_status{RG_E_UNSUPPORTED}, "pointer");
    return {static_cast<T*>(p), b.count};
  }
  // Cuts the arena into buckets that end before the elements `ends`, strictly ascending; the last is the arena's count.
  // on_gradient is called for each bucket once its gradients are final. Without a call the arena is one bucket.
  void set_buckets(std::span<const std::uint64_t> ends) {
    check(host_->buckets(host_->context, ends.data(), static_cast<std::uint32_t>(ends.size())), "buckets");
  }
  // As set_buckets(), for buckets that cover the arena in order.
  void set_buckets(std::span<const span_of_arena> buckets) {
    std::vector<std::uint64_t> ends;
    for (const span_of_arena& b : buckets) ends.push_back(b.end());
    set_buckets(std::span<const std::uint64_t>(ends));
  }
  // As set_buckets(), with buckets of `bytes` bytes, rounded down to a multiple of 64 but at least 64. The last is
  // shorter, or up to an eighth longer: a short rest would cost as many messages as a bucket. Returns them in order;
  // none for an empty arena.
  std::vector<span_of_arena> make_buckets(std::uint64_t bytes) {
    const std::uint64_t size = std::max<std::uint64_t>(16, bytes / 64 * 16), all = arena_->count;
    std::vector<span_of_arena> buckets;
    for (std::uint64_t first = 0; first < all; first = buckets.back().end()) {
      const std::uint64_t rest = all - first;
      buckets.push_back({first, rest <= size + size / 8 ? rest : size});
    }
    set_buckets(buckets);
    return buckets;
  }
  // Creates a group of `members`, ranks in ascending order with this one among them, for the transport's collectives.
  // All members call it in the same order. Returns nothing if the transport has no collectives for them.
  std::optional<group> split(std::span<const std::uint32_t> members) {
    const auto index = std::find(members.begin(), members.end(), rank()) - members.begin();
    group g{0, static_cast<std::uint32_t>(members.size()), static_cast<std::uint32_t>(index)};
    const rg_status s = host_->split(host_->context, members.data(), g.size, &g.id);
    if (s == RG_E_UNSUPPORTED) return std::nullopt;
    check(s, "split");
    return g;
  }

  // Transfers; each begins at once. Until the operation has ended, the source must not change and the target must not
  // be used. The k-th send to a peer on a lane matches its k-th receive there; a message may be shorter than its
  // receive. `wire`: RG_F16 or RG_BF16 sends fp32 in that type, which must be the same on both sides; 0: the type in
  // memory.
  operation send(std::uint32_t peer, rg_buffer source, std::uint32_t lane = 0, std::uint32_t wire = 0) {
    return transfer(RG_OP_SEND, peer, source, lane, wire, 0);
  }
  operation recv(std::uint32_t peer, rg_buffer target, std::uint32_t lane = 0, std::uint32_t wire = 0) {
    return transfer(RG_OP_RECV, peer, target, lane, wire, 0);
  }
  // Adds the received elements to `target`, which is RG_F32 or RG_F64.
  operation recv_add(std::uint32_t peer, rg_buffer target, std::uint32_t lane = 0, std::uint32_t wire = 0) {
    return transfer(RG_OP_RECV, peer, target, lane, wire, RG_OP_ADD);
  }
  // Returns whether the transport has this collective for elements of this type; only then may it be called.
  bool offers(rg_op_kind kind, std::uint32_t type = RG_F32, std::uint32_t reduction = RG_SUM,
              std::uint32_t wire = 0) const {
    return host_->offers && host_->offers(host_->context, kind, reduces(kind) ? reduction : 0, type, wire);
  }
  // The transport's collectives over a group, which all members must begin in the same order. These four are in place
  // and add up where they reduce. reduce_scatter() and all_gather() cut the buffer into chunks by part_of(), one for
  // each member in the order of ranks. collective() does any other (abi/operations.h: rg_op_collective).
  operation all_reduce(const group& g, rg_buffer buffer, std::uint32_t wire = 0) {
    return collective(RG_OP_ALL_REDUCE, g, {.reduction = RG_SUM, .wire = wire, .source = buffer, .target = buffer});
  }
  // The other members' chunks of the buffer are undefined afterwards.
  operation reduce_scatter(const group& g, rg_buffer buffer) {
    return collective(RG_OP_REDUCE_SCATTER, g, {.reduction = RG_SUM, .source = buffer, .target = own_chunk(g, buffer)});
  }
  operation all_gather(const group& g, rg_buffer buffer) {
    return collective(RG_OP_ALL_GATHER, g, {.source = own_chunk(g, buffer), .target = buffer});
  }
  // `root`: the root's index among the members.
  operation broadcast(const group& g, rg_buffer buffer, std::uint32_t root) {
    return collective(RG_OP_BROADCAST, g, {.root = root, .source = buffer, .target = buffer});
  }
  struct collective_arguments {
    std::uint32_t root = 0, reduction = 0, wire = 0;
    rg_buffer source{}, target{};
    // [members] Each null or valid until the operation has ended.
    const std::uint64_t *counts = nullptr, *target_counts = nullptr;
  };
  operation collective(rg_op_kind kind, const group& g, const collective_arguments& a) {
    auto op = make<rg_op_collective>(kind);
    op.group = g.id;
    op.root = a.root;
    op.reduction = a.reduction;
    op.wire = a.wire;
    op.source = a.source;
    op.target = a.target;
    op.counts = a.counts;
    op.target_counts = a.target_counts;
    return submit(op);
  }

  // Arithmetic on RG_F32, done in the memory where the buffers are, which must be the same (host or device). Source and
  // target have the same length. fill: target = value; copy, of any type: target = source; axpy: target += a * source;
  // scale: target *= a; clip: scales target down to the Euclidean norm `norm` if its norm is larger and finite.
  operation fill(rg_buffer target, double value) { return fill_at(target, {}, value); }
  operation copy(rg_buffer target, rg_buffer source) {
    auto op = make<rg_op_copy>(RG_OP_COPY);
    op.target = target;
    op.source = source;
    return submit(op);
  }
  operation axpy(rg_buffer target, double a, rg_buffer source) { return axpy_at(target, {}, a, source); }
  operation scale(rg_buffer target, double a) {
    auto op = make<rg_op_scale>(RG_OP_SCALE);
    op.target = target;
    op.factor = a;
    return submit(op);
  }
  operation clip(rg_buffer target, double norm) {
    auto op = make<rg_op_clip>(RG_OP_CLIP);
    op.target = target;
    op.max_norm = norm;
    return submit(op);
  }
  // u = a * u + g, then v += u.
  operation accumulate(rg_buffer u, double a, rg_buffer g, rg_buffer v) {
    auto op = make<rg_op_accumulate>(RG_OP_ACCUMULATE);
    op.velocity = u;
    op.gradient = g;
    op.sum = v;
    op.factor = a;
    return submit(op);
  }
  // c = alpha * a * b + beta * c. a and b are both RG_F32 or both RG_BF16, c is RG_F32; pass transposed(a) or
  // transposed(b) to multiply by its transpose. c overlaps neither a nor b; if beta is 0, c is not read. On the host it
  // is computed off the loop. The order of each element's sum depends on the shapes and on where it is computed. Throws
  // rg::error if the shapes do not match.
  operation gemm(double alpha, const matrix& a, const matrix& b, double beta, const matrix& c) {
    auto op = make<rg_op_gemm>(RG_OP_GEMM);
    op.gemm = {.a_type = a.elements.type,
               .b_type = b.elements.type,
               .c_type = c.elements.type,
               .flags = (a.across ? std::uint32_t{RG_GEMM_A} : 0) | (b.across ? std::uint32_t{RG_GEMM_B} : 0),
               .m = c.rows,
               .n = c.columns,
               .k = a.across ? a.rows : a.columns,
               .a_row = a.row,
               .b_row = b.row,
               .c_row = c.row,
               .alpha = alpha,
               .beta = beta};
    const bool match = (a.across ? a.columns : a.rows) == c.rows && (b.across ? b.rows : b.columns) == c.columns &&
                       (b.across ? b.columns : b.rows) == op.gemm.k && !c.across;
    if (!match) throw error(RG_E_PLUGIN, "gemm: expected a of m x k, b of k x n and c of m x n, got other shapes");
    op.a = a.elements;
    op.b = b.elements;
    op.c = c.elements;
    return submit(op);
  }
  // Runs a function of the strategy's own on buffers, of any type, all in host memory or all on a device, at most
  // RG_MAX_RUN_BUFFERS. It has one of two forms:
  //   f(void* const* addresses)   for host memory: addresses[i] is the first byte of buffers[i]. It runs on a thread of
  //                               the engine's while the loop goes on; a device's buffers are refused.
  //   f(const rg_run& on)         for both: if on.stream is not null, f is called on the loop and enqueues its kernels
  //                               there, on the device's addresses in on.addresses, without waiting for them
  // f is copied: a trivially copyable object of at most run_bytes bytes, such as a lambda that captures numbers and
  // pointers. What it captures by reference must be valid until the operation has ended. `declared` says how long it
  // takes under a virtual clock; with ghosts f is not called (abi/operations.h: rg_op_run). An exception of f ends the
  // run, with RG_E_PLUGIN and its text.
  struct cost {
    std::uint64_t bytes, flops; // bytes read and written; not both 0
  };
  static constexpr std::size_t run_bytes = sizeof(detail::function_record::function);
  template <class F, class... Buffers> operation run(F f, cost declared, const Buffers&... buffers) {
    static_assert(sizeof...(buffers) > 0 && sizeof...(buffers) <= RG_MAX_RUN_BUFFERS);
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= run_bytes && alignof(F) <= alignof(std::max_align_t),
                  "the function captures numbers and pointers, at most 64 bytes");
    constexpr bool anywhere = std::is_invocable_v<F&, const rg_run&>;
    static_assert(anywhere || std::is_invocable_v<F&, void* const*>,
                  "the function has the form f(void* const* addresses) or f(const rg_run& on)");
    const rg_buffer list[] = {buffers...};
    auto op = make<rg_op_run>(RG_OP_RUN);
    detail::function_record* const r = take_record(functions_);
    r->has_function = true;
    ::new (static_cast<void*>(r->function)) F(f);
    op.context = r;
    op.function = [](void* context, const rg_run* on) {
      auto& record = *static_cast<detail::function_record*>(context);
      F& function = *std::launder(reinterpret_cast<F*>(record.function));
      // RG_E_PLUGIN, whatever it threw, keeps the text that fence() recorded.
      return rg_status{fence(record.owner->host_->host,
                             [&] {
                               if constexpr (anywhere)
                                 function(*on);
                               else
                                 function(on->addresses);
                             }) < 0
                           ? RG_E_PLUGIN
                           : RG_OK};
    };
    op.buffers = list;
    op.buffer_count = sizeof...(buffers);
    op.memory = RG_MEMORY_HOST | (anywhere ? std::uint32_t{RG_MEMORY_DEVICE} : 0);
    op.bytes = declared.bytes;
    op.flops = declared.flops;
    return submit(op, r);
  }
  // Rounds `target` as sending it with wire type `wire` would; 0: does nothing.
  operation round(rg_buffer target, std::uint32_t wire) {
    if (!wire) return {};
    auto op = make<rg_op_convert>(RG_OP_CONVERT);
    op.target = op.source = target;
    op.round_to = wire;
    return submit(op);
  }
  // These two change only the elements of `target` that `index` (RG_I32) names: target[index[i]] = value, and
  // target[index[i]] += a * source[i]. An index without a region: all elements, as fill() and axpy() do.
  operation fill_at(rg_buffer target, rg_buffer index, double value) {
    auto op = make<rg_op_fill>(RG_OP_FILL);
    op.target = target;
    op.index = index;
    op.value = value;
    return submit(op);
  }
  operation axpy_at(rg_buffer target, rg_buffer index, double a, rg_buffer source) {
    auto op = make<rg_op_axpy>(RG_OP_AXPY);
    op.target = target;
    op.source = source;
    op.index = index;
    op.factor = a;
    return submit(op);
  }
  // Writes the values.count elements of `source` with the largest magnitude to `values`, and their indices to `index`
  // (RG_I32, as many), in ascending order of index. `source` has at least as many elements, and at most 2^31 - 1.
  operation top_k(rg_buffer source, rg_buffer index, rg_buffer values) {
    auto op = make<rg_op_top_k>(RG_OP_TOP_K);
    op.source = source;
    op.index = index;
    op.values = values;
    return submit(op);
  }
  // Writes all elements of `source` (at most 2^31 - 1) with a magnitude above `threshold` to `values`, and their
  // indices to `index` (RG_I32, as long as `values`), in ascending order of index. co_await returns the bytes of the
  // values. More than values.count such elements are an error that ends the run.
  operation select(rg_buffer source, double threshold, rg_buffer index, rg_buffer values) {
    auto op = make<rg_op_select>(RG_OP_SELECT);
    op.source = source;
    op.index = index;
    op.values = values;
    op.threshold = threshold;
    return submit(op);
  }

  // The optimizer, on elements that this rank owns in the role. `gradient` is the gradient of the arena's elements
  // [first, first + gradient.count); if it is empty, nothing happens. If updates are deferred, it must not change until
  // commit().
  operation apply(std::uint64_t first, rg_buffer gradient, std::uint64_t step, role as) {
    if (!gradient.count) return {}; // a model that has sparse tables only has an empty arena
    auto op = make<rg_op_apply>(RG_OP_APPLY, as);
    op.step = step;
    op.first = first;
    op.gradient = gradient;
    return submit(op);
  }
  // Writes to `target` (2 x RG_F64, in the arena's memory) the number of non-finite elements, and the sum of squares of
  // the finite ones, of the gradients that this rank applied in the role since the last commit; zeros if not
  // deferred().
  operation norm(rg_buffer target, role as) {
    auto op = make<rg_op_norm>(RG_OP_NORM, as);
    op.target = target;
    return submit(op);
  }
  // Does this rank's deferred updates of this step in one role, or drops them if a gradient is not finite. `total`: the
  // sum of norm() over owners that together hold each element and row once; an owner of all of them passes its own
  // norm(). Every owner calls it once a step if deferred().
  operation commit(rg_buffer total, std::uint64_t step, role as) {
    auto op = make<rg_op_commit>(RG_OP_COMMIT, as);
    op.step = step;
    op.total = total;
    return submit(op);
  }

  // Operations on rows of sparse table t that this rank holds in role `as` (own_rows()); all buffers are in host
  // memory. `numbers`: n row numbers (RG_I64), each once; values are RG_F32 [n, row]. A row is initialised by the model
  // when it is first needed.
  //
  // rows_read() copies the rows' weights to `target`.
  operation rows_read(std::uint32_t t, rg_buffer numbers, rg_buffer target, role as) {
    return rows_read(t, numbers, target, as, 0);
  }
  // Provides the model with the weights of the `count` rows of this step, all of them, which this rank holds as a
  // worker. The rows must not change until the model has ended its step. A model that can read rows in place gets their
  // addresses; for others they are copied to the table's window. The strategy must not read the window.
  operation rows_show(std::uint32_t t, std::uint64_t count) {
    return rows_read(t, row_numbers(t, 0, count), row_weights(t, 0, count), role::worker, RG_ROWS_FOR_MODEL);
  }
  // Adds `gradients` to the rows' pending gradients, which rows_apply() turns into an update.
  operation rows_add(std::uint32_t t, rg_buffer numbers, rg_buffer gradients, role as) {
    auto op = make<rg_op_rows_add>(RG_OP_ROWS_ADD, as, t);
    op.rows = numbers;
    op.gradients = gradients;
    return submit(op);
  }
  // Updates all rows that have pending gradients, and clears the gradients. The second form first adds `gradients`. If
  // updates are deferred, the gradients only take part in the norm, and none may be added until the commit.
  operation rows_apply(std::uint32_t t, std::uint64_t step, role as) { return rows_apply(t, {}, {}, step, as); }
  operation rows_apply(std::uint32_t t, rg_buffer numbers, rg_buffer gradients, std::uint64_t step, role as) {
    auto op = make<rg_op_rows_apply>(RG_OP_ROWS_APPLY, as, t);
    op.step = step;
    op.rows = numbers;
    op.gradients = gradients;
    return submit(op);
  }
  // Adds a * source to the rows' weights, without the optimizer.
  operation rows_write(std::uint32_t t, rg_buffer numbers, double a, rg_buffer source, role as) {
    auto op = make<rg_op_rows_write>(RG_OP_ROWS_WRITE, as, t);
    op.rows = numbers;
    op.values = source;
    op.factor = a;
    return submit(op);
  }
  // Copy rows between buffers in host memory; `index` is RG_I64, the others RG_F32. target[i] = source[index[i]] in
  // gather, target[index[i]] = source[i] in scatter. A row has target.count / index.count elements in gather,
  // source.count / index.count in scatter.
  operation gather(rg_buffer target, rg_buffer source, rg_buffer index) {
    return copy_rows(RG_OP_GATHER_ROWS, target, source, index);
  }
  operation scatter(rg_buffer target, rg_buffer index, rg_buffer source) {
    return copy_rows(RG_OP_SCATTER_ROWS, source, target, index);
  }

  // after() completes `ns` nanoseconds from now. now() returns the time in nanoseconds since a fixed point; both by the
  // virtual clock if there is one.
  operation after(std::uint64_t ns) {
    auto op = make<rg_op_timer>(RG_OP_TIMER);
    op.delay_ns = ns;
    return submit(op);
  }
  std::uint64_t now() const { return host_->now(host_->context); }

  // Returns the optimizer's momentum coefficient, for a strategy with RG_PLAN_MOMENTUM.
  double momentum() const { return host_->momentum; }
  // Allows the model to read the weights from element `first` of the arena on; 0: all of them. A first call before
  // end_step ends lets the next step begin before all weights have arrived (with the arena's count before any has): the
  // forward pass reads weights from the arena's end to its beginning. In further calls `first` only falls, and the next
  // backward pass waits for 0. Without a call all weights must be there when end_step ends.
  void weights_from(std::uint64_t first) { host_->weights_from(host_->context, first); }
  // Record figures by name, which the result has under "strategy", for the timed region only. record_value(): how often
  // each value occurred on all ranks; record_sum(): the sum of the amounts per step, as a mean over the ranks that
  // recorded it. A strategy that chooses among algorithms records "algorithm_NAME" for the one that it runs: these
  // names stand in the result's fingerprint and in the heading of its table.
  void record_value(const char* name, std::uint64_t value) {
    host_->record_value(host_->context, name, static_cast<std::int64_t>(value));
  }
  // As record_value, for a value that belongs to step `step` of worker `worker`: counted only if that step is timed.
  void record_of_step(const char* name, std::uint64_t value, std::uint32_t worker, std::uint64_t step) {
    host_->record_of_step(host_->context, name, static_cast<std::int64_t>(value), worker, step);
  }
  void record_sum(const char* name, double amount) { host_->record_sum(host_->context, name, amount); }

  // Takes spans, with times of now(). Tracks 0 to 15 are the SDK's, for the strategy's activities; the strategy records
  // its spans on tracks from 16 on.
  const tracer& trace() const { return trace_; }

  // Returns the host address of a buffer, or null for an empty buffer, for ghosts and for buffers on a device. Never
  // throws.
  template <class T> T* pointer(rg_buffer b) const {
    void* p = nullptr;
    if (!b.count || !host_->pointer || host_->pointer(host_->context, &b, &p) != RG_OK) return nullptr;
    return static_cast<T*>(p);
  }
  // Logs one line for the user, which the result shows.
  void warn(const std::string& text) { host_->host->log(host_->host->context, RG_LOG_WARNING, text.c_str()); }

  const rg_strategy_host* host() const { return host_; }

  // Called by the SDK when operations have ended.
  void completed(const rg_completion* c, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      auto* r = reinterpret_cast<detail::operation_record*>(static_cast<std::uintptr_t>(c[i].cookie));
      if (r->detached) {
        recycle(r);
        continue;
      }
      const std::coroutine_handle<> waiter = r->waiter;
      r->done = true;
      r->status = c[i].status;
      r->bytes = c[i].bytes;
      if (waiter) waiter.resume();
    }
  }
  // Called by `operation`: makes a record, which no operation uses any more, free for a later one.
  void recycle(detail::operation_record* r) noexcept {
    detail::operation_record*& free = r->has_function ? functions_.free : records_.free;
    r->next = free;
    free = r;
  }

private:
  template <class Op> static Op make(rg_op_kind kind) {
    Op op{};
    op.op.struct_size = sizeof op;
    op.op.kind = kind;
    return op;
  }
  template <class Op> static Op make(rg_op_kind kind, role as) {
    auto op = make<Op>(kind);
    op.role = static_cast<std::uint32_t>(as);
    return op;
  }
  template <class Op> static Op make(rg_op_kind kind, role as, std::uint32_t table) {
    auto op = make<Op>(kind, as);
    op.table = table;
    return op;
  }
  operation transfer(rg_op_kind kind, std::uint32_t peer, rg_buffer buffer, std::uint32_t lane, std::uint32_t wire,
                     std::uint32_t flags) {
    auto op = make<rg_op_transfer>(kind);
    op.peer = peer;
    op.lane = lane;
    op.buffer = buffer;
    op.wire = wire;
    op.flags = flags;
    return submit(op);
  }
  static rg_buffer own_chunk(const group& g, rg_buffer whole) {
    const span_of_arena own = part_of({0, whole.count}, g.index, g.size);
    return sub(whole, own.first, own.count);
  }
  operation rows_read(std::uint32_t t, rg_buffer numbers, rg_buffer target, role as, std::uint32_t flags) {
    auto op = make<rg_op_rows_read>(RG_OP_ROWS_READ, as, t);
    op.rows = numbers;
    op.target = target;
    op.flags = flags;
    return submit(op);
  }
  operation copy_rows(rg_op_kind kind, rg_buffer rows, rg_buffer table, rg_buffer index) {
    auto op = make<rg_op_copy_rows>(kind);
    op.rows = rows;
    op.table = table;
    op.index = index;
    return submit(op);
  }
  static void check(rg_status s, const char* what) {
    if (s == RG_E_PLUGIN) throw error(s, ""); // the engine has reported why; a text here would replace it
    if (s < 0) throw error(s, std::string("the engine refused ") + what);
  }
  template <class Record> struct record_pool { // records, in blocks, which never move
    detail::operation_record* free = nullptr;
    std::vector<std::unique_ptr<std::array<Record, 16>>> blocks;
    std::size_t used = 0;
  };
  template <class Record> Record* take_record(record_pool<Record>& from) {
    if (detail::operation_record* const r = from.free) {
      from.free = r->next;
      r->waiter = {};
      r->status = RG_OK;
      r->done = r->detached = false;
      return static_cast<Record*>(r);
    }
    const std::size_t at = from.used++ % 16;
    if (at == 0) from.blocks.push_back(std::make_unique<std::array<Record, 16>>());
    Record& made = (*from.blocks.back())[at];
    made.owner = this;
    return &made;
  }
  template <class Op> operation submit(Op& op) { return submit(op, take_record(records_)); }
  template <class Op> operation submit(Op& op, detail::operation_record* r) {
    op.op.cookie = reinterpret_cast<std::uintptr_t>(r);
    const rg_status s = host_->submit(host_->context, &op.op);
    if (s == RG_OK) return operation(r);
    recycle(r);
    check(s, "an operation");
    return operation();
  }

  const rg_strategy_host* host_;
  const rg_cluster* cluster_;
  const rg_arena* arena_;
  tracer trace_;
  record_pool<detail::operation_record> records_;
  record_pool<detail::function_record> functions_;
};

inline operation::~operation() {
  if (!record_) return;
  if (record_->done)
    record_->owner->recycle(record_);
  else
    record_->detached = true;
}
inline std::uint64_t operation::await_resume() {
  if (!record_) return 0;
  const rg_status s = record_->status;
  const std::uint64_t bytes = record_->bytes;
  record_->owner->recycle(std::exchange(record_, nullptr));
  if (s == RG_E_PLUGIN) throw error(s, ""); // the function has said why; a text here would replace it
  if (s < 0)
    throw error(s, s == RG_E_PEER ? "a peer is gone" : s == RG_E_CANCELLED ? "cancelled" : "a transfer failed");
  return bytes;
}

} // namespace rg

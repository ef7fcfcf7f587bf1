// SPDX-License-Identifier: Apache-2.0
//
// Runs one rank's strategy: implements rg_strategy_host (abi.h) on any transport. It contains no thread, process or
// model, so the same code drives real ranks and a thousand simulated ones.
#pragma once

#include "config/experiment.hpp"
#include "device/device.hpp"
#include "device/host.hpp"
#include "device/staging.hpp"
#include "measure/record.hpp"
#include "memory/regions.hpp"
#include "optimizer/optimizer.hpp"
#include "registry/plugin_host.hpp"
#include "runtime/sparse_tables.hpp"
#include "runtime/transfers.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include <regatta/abi.h>
#include <regatta/link.h>

namespace regatta {

// The ranks of a run and their roles; owns the arrays that rg_cluster points to.
struct cluster_layout {
  std::uint32_t workers = 1, servers = 0;
  std::vector<std::uint32_t> server_rank, host_of; // a rank by server, a host by rank; both count from 0

  // Ranks 0 .. workers-1 are workers. With `colocate`, server k < workers shares rank k with worker k; all other
  // servers have the ranks after the workers. Workers are spread over `hosts` hosts in contiguous blocks, and so are
  // the servers that have ranks of their own. Requires at least one worker and one host.
  static cluster_layout make(std::uint32_t workers, std::uint32_t servers, bool colocate, std::uint32_t hosts = 1);
  std::uint32_t size() const { return static_cast<std::uint32_t>(host_of.size()); }
  // Returns the cluster as `rank` sees it; UINT32_MAX gives a view of no rank, for plan() and talks(). Points into this
  // object.
  rg_cluster view(std::uint32_t rank) const;
};

// Returns whether the strategy, by its talks(), lets any two ranks exchange messages. `all` is a view of no rank.
bool talks(const rg_strategy& strategy, const rg_value* values, const rg_cluster& all);

// Returns the strategy's plan with defaults filled in: at least one lane, a period of at least 1. `id` names the
// strategy in errors. Throws failure: (plugin) if the plan contradicts itself, else as check() does for plan()'s
// status.
rg_plan plan_of(const rg_strategy& strategy, const rg_value* values, const cluster_layout& layout,
                const optimizer_config& config, plugin_host& host, const std::string& id);

// Prepares `config` for a strategy that computes the momentum itself (RG_PLAN_MOMENTUM): the engine keeps plain SGD,
// and the momentum coefficient is returned. Returns 0 and changes nothing for other strategies. Throws failure (usage)
// for an optimizer that cannot be divided like this.
double hand_over_momentum(const rg_plan& plan, const std::string& strategy_id, optimizer_config& config);

// Everything that the pointers refer to must outlive the exchange; so must the names of `tensors`.
struct exchange_setup {
  const rg_strategy* strategy;
  const rg_value* values;
  std::string strategy_id;
  const rg_transport* transport;
  std::string transport_id;
  void* transport_self; // connected
  rg_transport_caps caps;
  plugin_host* transport_host;
  cluster_layout layout;
  std::uint32_t rank, lanes;       // lanes: of the plan
  std::vector<rg_tensor> tensors;  // of the model; dense ones form the arena, ROWS ones the sparse tables
  std::uint64_t micro_batches = 1; // per step; their rows share the windows of the sparse tables
  bool rows_in_place = false;      // the model can read rows of sparse tables in the shard, without a copy
  optimizer_config optimizer;
  std::uint64_t seed;  // for the strategy
  double momentum = 0; // coefficient for a strategy that computes momentum itself; `optimizer` then has none
  bool ghosts = false; // buffers have a size but no bytes
  // holds weights, gradients and the strategy's buffers; the rows of sparse tables stay with the host. null: no device
  regatta::device* device = nullptr;
  // [main] Writes the initial weights of elements [first, first + count) of the arena, which a server owns. Null with
  // ghosts.
  std::function<void(std::uint64_t first, std::uint64_t count, float* out)> initial_weights;
  // [loop] Writes the initial weights of rows of a sparse table, when they are first requested.
  tables::init_function initial_rows;
  plugin_host::log_function log;
  std::string link; // text of the extension "regatta.link/1" for the strategy; empty under virtual time: no extension
};

class exchange {
public:
  enum activity : std::uint64_t { begin_step = 1, end_step = 2, serve = 3, finish = 4, pull_rows = 5 };

  // [main] Lays out the arena and allocates and registers its memory, zeroed. Throws failure: (plugin) if the model has
  // no weights or an invalid table, else if memory is not available. A worker then writes the initial weights and calls
  // start().
  explicit exchange(exchange_setup setup);
  ~exchange();
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;
  // [main] Creates the strategy, which allocates buffers and sets the buckets. Call it once, before all that follows
  // except arena(), weights(), gradients() and tables(). Throws failure with the plugin's text.
  void start();

  // Valid as long as the exchange. Its buffers of weights and gradients are empty on a rank that is no worker.
  const rg_arena& arena() const { return arena_; }
  // The whole arena, padding included. Empty on a rank that is no worker, and with ghosts. With a device these point to
  // device memory, which the host must not access.
  std::span<float> weights() const;
  std::span<float> gradients() const;
  // Passes the weights, or the gradients, to host code: all at once, or from a device in pieces, in ascending order.
  // The spans are valid during the call of `to`. Call them between steps; they wait for a device.
  using show_function = std::function<void(std::span<const float>)>;
  void show_weights(const show_function& to) const { show(weights(), to); }
  void show_gradients(const show_function& to) const { show(gradients(), to); }
  // Returns the gradients of the rows that were last set for sparse table `t`, one row after the other in the order of
  // tables().rows()[t]. Empty on a rank that is no worker, and with ghosts. Call it between steps.
  std::span<const float> row_gradients(std::uint32_t t) const;
  // Checks the guards before and behind each region. Returns the place of the first write there, such as "memory behind
  // the gradients"; std::nullopt if there is none. Call it between steps; waits for a device.
  std::optional<std::string> find_damage() const;
  // Returns whether any step below `end` has a learning rate above 0, so that its update changes weights.
  bool learns_before(std::uint64_t end) const;
  // [loop] As transfers::given_bytes().
  std::uint64_t given_bytes() const { return transfers_.given_bytes(); }
  regatta::tables& tables() { return *tables_; }
  const regatta::tables& tables() const { return *tables_; }
  // [any] Returns, for each bucket, the end of its elements in the arena, ascending; the last is the arena's end. Does
  // not change after start(). Empty if there are no dense weights.
  std::span<const std::uint64_t> bucket_ends() const { return bucket_ends_; }

  // [loop] Begins an activity of the strategy. Its end comes at once, or during a later poll(); done() returns whether
  // the activity is over or never began. In each step: begin_step, gradients_ready() up to the arena's end, end_step.
  // begin_step and pull_rows use the rows that were last set in tables(). `step` is ignored by serve, finish and
  // pull_rows. Throws failure if the activity fails before it waits for anything, and (plugin) if the strategy has no
  // pull_rows(); a later failure makes poll() throw.
  void begin(activity a, std::uint64_t step);
  bool done(activity a) const { return !running_[a]; }
  // [loop] Throws the first failure that the strategy reported, even if begin() or poll() threw it before. Call it once
  // more before the result is computed: a strategy may report a failure outside of begin() and poll().
  void require_success() const;
  // [compute] Declares that elements [0, end) of the arena hold this step's gradients; on a device, once `fence` has
  // passed. `end` only grows within a step. poll() and begin(end_step) report complete buckets to the strategy.
  // Lock-free.
  void gradients_ready(std::uint64_t end, rg_fence fence = 0) noexcept;
  // [loop] Runs one round: moves bytes, and reports completions and complete buckets to the strategy. Waits at most
  // `timeout_ns` for an event and spins for the first `spin_ns` of it. Returns whether it reported anything to the
  // strategy; bytes may have moved although it returns false. Throws failure: of the transport, the strategy or an
  // operation.
  bool poll(std::uint64_t timeout_ns, std::uint64_t spin_ns);
  // [loop] Returns when the next timer (or, under virtual time, operation) of the strategy is due, in ns on the
  // transport's virtual clock if it has one, else on the monotonic clock. UINT64_MAX: there is none.
  std::uint64_t next_timer() const;
  // [loop] Returns whether poll() must still be called: an operation or timer is pending, or serve is not over.
  bool busy() const { return transfers_.outstanding() || !timers_.empty() || !awaited_.empty() || running_[serve]; }

  // [loop] Describes the pending operations, for messages to people.
  std::vector<transfers::open_operation> open_operations() const { return transfers_.open(); }
  // [any] Returns the `end` of the last gradients_ready() in this step; 0: there was none. Lock-free.
  std::uint64_t gradients_ready_to() const noexcept { return ready_.load(std::memory_order_relaxed); }

  // [any] Returns the first element of the arena from which on the model may read weights; the weights before it have
  // not arrived yet. 0: all have arrived. Lock-free.
  std::uint64_t weights_from() const noexcept { return weights_from_.load(std::memory_order_acquire); }
  // [any] Returns the fence after which a device may read those weights and write gradients; 0 without a device. Call
  // it after weights_from() or after the end of an activity. Lock-free.
  rg_fence weights_after() const noexcept { return weights_after_.load(std::memory_order_acquire); }
  // [loop] Waits until a device has completed all enqueued work, the model's gradients included. Do not call it within
  // a step. Does nothing without a device.
  void settle();

  // [loop] The values that the strategy recorded since the last call of forget_records().
  const strategy_records& records() const { return records_; }
  void forget_records() { records_ = {}; }

  // [loop] Time that this thread spent on updating weights since the start, in the worker role. Work on a device counts
  // only with the time for enqueueing it.
  std::uint64_t worker_update_ns() const { return update_ns_[0]; }
  // [loop] Replaces `out` by the time spans of the worker's updates on the device since the last call, the first 600 of
  // them; empty if the device has no timing marks. The old memory of `out` is reused for the next spans.
  void take_updates(std::vector<device::span>& out);
  // [loop] As worker_update_ns(), in the server role.
  std::uint64_t server_update_ns() const { return update_ns_[1]; }
  // Returns the bytes of optimizer state for the arena elements that this rank owns in both roles, without sparse
  // tables.
  std::uint64_t optimizer_state_bytes() const {
    return worker_optimizer_->state_bytes() + server_optimizer_->state_bytes();
  }

private:
  struct timer {
    std::uint64_t at, order, cookie, bytes;
    bool operator>(const timer& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  // An operation that ends when the device reaches `fence`: a SELECT, because its result size is awaited, or a COMMIT,
  // because the host needs the norm.
  struct awaited {
    rg_op op;
    rg_fence fence;
    device::host_memory seen; // the number found by SELECT, or the norm for COMMIT
  };
  void lay_out();
  std::uint64_t now() const;
  rg_status submit(const rg_op& op);
  rg_status own(bool as_server, std::uint64_t first, std::uint64_t count, rg_buffer* out);
  rg_status transfer(const rg_op& op);
  rg_status collective(const rg_op& op);
  // Returns the transport's function for a collective (null: it has none) and its name.
  std::pair<transfers::collective_function, const char*> native(std::uint32_t kind) const;
  processor& unit_of(const rg_buffer& b); // the processor that computes on this buffer
  bool in_one_memory(const rg_op& op) const;
  void add_norm_of_rows(bool as_server, double* pair);
  rg_status arithmetic(const rg_op& op);
  rg_status compute(const rg_op& op, rg_work& work);
  rg_status compute(const rg_op& op, rg_work& work, std::uint64_t bytes); // and calls worked()
  void order(const rg_op& op);
  void order(const rg_buffer& buffer);
  void mark_weights();
  void await(const rg_op& op, device::host_memory seen);
  device::host_memory pinned_pair();
  void end_awaited();
  rg_status convert(const rg_op& op);
  rg_status select(const rg_op& op);
  rg_status update(const rg_op& op);
  template <class F> void timed(bool as_server, F&& f); // runs an update and records its time span in updates_
  void commit(const rg_op& op, const double* total);
  rg_status rows(const rg_op& op);
  // Completes work on `bytes` of memory: at once, or under a virtual clock after the time that the work takes.
  rg_status worked(const rg_op& op, std::uint64_t bytes);
  static std::uint64_t virtual_ns(std::uint64_t bytes);
  void end_later(const rg_op& op, std::uint64_t ns, std::uint64_t bytes);
  rg_status refuse(const std::string& why);
  bool give_gradients();
  void ask(rg_status status, const char* what);
  void show(std::span<const float> all, const show_function& to) const;
  std::string name_of_buffer();
  void end_activity(std::uint64_t which, rg_status status);
  void fail(const std::function<void()>& throws) noexcept; // keeps the first failure

  exchange_setup setup_;
  rg_link link_{};
  plugin_host strategy_host_;
  rg_transport transport_;
  rg_cluster cluster_;
  host_processor host_processor_;
  device* device_;
  std::vector<device::span> updates_;
  processor& unit_; // of the arena's memory: the host or the device
  bool reaches_;    // whether the transport can access the arena
  region_table regions_;
  std::unique_ptr<staging> on_host_, on_device_; // on_device_ is null without a device
  transfers transfers_;
  std::vector<rg_slice> slices_;
  rg_arena arena_{};
  std::unique_ptr<optimizer> worker_optimizer_, server_optimizer_;
  update_rule rule_; // for tables_
  std::unique_ptr<regatta::tables> tables_;
  rg_collectives collectives_{};
  rg_strategy_host host_{};
  void* self_ = nullptr;

  std::vector<std::uint64_t> bucket_ends_;
  std::vector<rg_fence> bucket_fences_; // [compute] writes it before ready_
  std::size_t fenced_ = 0;              // [compute] buckets of this step that have a fence
  std::uint32_t ordered_ = 0;           // buckets of this step whose fences stream `computing` already waits for
  std::atomic<std::uint64_t> ready_{0};
  std::uint64_t step_ = 0;
  std::uint32_t next_bucket_ = 0;
  bool stepping_ = false; // between begin(begin_step) and the end of end_step
  std::array<bool, 6> running_{};
  std::exception_ptr failure_; // the first one
  std::priority_queue<timer, std::vector<timer>, std::greater<>> timers_;
  std::uint64_t timer_order_ = 0;
  std::vector<rg_completion> completions_, delivering_;
  std::array<std::uint64_t, 2> update_ns_{};
  std::atomic<std::uint64_t> weights_from_{0};
  std::atomic<rg_fence> weights_after_{0};
  std::vector<awaited> awaited_;
  std::vector<device::host_memory> pinned_;         // reused by awaited_
  std::array<device::host_memory, 2> norm_of_rows_; // as worker, as server: being copied to the device until the COMMIT
  strategy_records records_;
  std::uint32_t buffers_ = 0; // number that the strategy allocated
};

} // namespace regatta

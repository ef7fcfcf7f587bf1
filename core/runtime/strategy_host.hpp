// SPDX-License-Identifier: Apache-2.0
//
// Runs one rank's strategy: implements rg_strategy_host (abi.h) on any transport. It contains no process or model, and
// no thread but one for functions of the strategy's own, which is not used under a virtual clock. So the same code
// drives real ranks and a thousand simulated ones.
#pragma once

#include "device/device.hpp"
#include "device/staging.hpp"
#include "experiment/experiment.hpp"
#include "measure/rank_record.hpp"
#include "memory/regions.hpp"
#include "registry/plugin_host.hpp"
#include "runtime/collective_rules.hpp"
#include "runtime/gradient_buckets.hpp"
#include "runtime/local_operations.hpp"
#include "runtime/sparse_tables.hpp"
#include "runtime/step_sums.hpp"
#include "runtime/transfers.hpp"
#include "runtime/transport_instance.hpp"
#include "runtime/virtual_work.hpp"
#include "runtime/weight_updates.hpp"
#include "trace/recorder.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <regatta/abi.h>
#include <regatta/ext/collectives.h>

namespace regatta {

// Everything that the pointers refer to must outlive the strategy_host; so must the arrays of `cluster` and the names
// of `tensors`.
struct strategy_host_setup {
  const rg_strategy* strategy;
  const rg_value* values;
  std::string strategy_id;
  transport_instance transport;
  rg_cluster cluster;              // as this rank sees it
  std::uint32_t lanes;             // of the plan: for the strategy, without the one for step_sums
  std::vector<rg_tensor> tensors;  // of the model; dense ones form the arena, ROWS ones the sparse tables
  std::uint64_t micro_batches = 1; // per step; their rows share the windows of the sparse tables
  bool rows_in_place = false;      // the model can read rows of sparse tables in the shard, without a copy
  optimizer_config optimizer;
  std::uint64_t seed; // for the strategy
  // The most numbers of one sum over workers within a step (step_sums). Above 0, the transport has a lane for these
  // sums before those of the strategy. 0: the model takes no such sums, and there is no such lane.
  std::uint64_t step_numbers = 0;
  double momentum = 0; // coefficient for a strategy that computes momentum itself; `optimizer` then has none
  // ghosts: buffers have a size but no bytes, except those of RG_I64 in host memory if there are sparse tables, which
  // hold row numbers. no_pointers: they have bytes, but rg_strategy_host.pointer fails, as it
  // does on a device. ghosts_on_host: ghosts stand for host memory, else for memory of a device.
  bool ghosts = false, no_pointers = false, ghosts_on_host = false;
  // holds weights, gradients and the strategy's buffers; the rows of sparse tables stay with the host. null: no device
  regatta::device* device = nullptr;
  // [main] Writes the initial weights of elements [first, first + count) of the arena, which a server owns, to `out` in
  // host memory. May be null with ghosts.
  std::function<void(std::uint64_t first, std::uint64_t count, float* out)> initial_weights;
  // [loop] Writes the initial weights of rows of a sparse table, when they are first requested.
  sparse_tables::init_function initial_rows;
  plugin_host::log_function log;
  plugin_host::extension_function extensions; // of the strategy's host; may be empty
  virtual_work work;                          // under a virtual clock: what operations take
  trace_recorder* trace = nullptr;            // records operations and messages; null: nothing
};

class strategy_host {
public:
  enum activity : std::uint64_t { begin_step = 1, end_step = 2, serve = 3, finish = 4, pull_rows = 5 };

  // [main] Lays out the arena and allocates and registers its memory, zeroed. Throws failure: (plugin) if the model has
  // no weights or an invalid table, (usage) if the optimizer's configuration is not supported, else if memory is not
  // available. A worker then writes the initial weights to weights(); every rank then calls start().
  explicit strategy_host(strategy_host_setup setup);
  ~strategy_host();
  strategy_host(const strategy_host&) = delete;
  strategy_host& operator=(const strategy_host&) = delete;
  // [main] Creates the strategy, which allocates buffers and sets the buckets. Call it once, before all that follows
  // except arena(), weights(), gradients() and tables(). Throws failure with the plugin's text.
  void start();

  // [main] Destroys the strategy, but keeps all memory. Call it before the transport is destroyed, if operations may be
  // outstanding: the transport may access their memory until then. Only the destructor follows.
  void forget_transport();

  // Valid as long as this object. Its buffers of weights and gradients are empty on a rank that is no worker.
  const rg_arena& arena() const { return arena_; }
  // The whole arena, padding included. Empty on a rank that is no worker, and with ghosts. With a device these point to
  // device memory, which the host must not access.
  std::span<float> weights() const;
  std::span<float> gradients() const;
  // Passes the weights, or the gradients, to host code: all at once, or from a device in ranges, in ascending order.
  // The spans are valid during the call of `to`. Call them between steps; they wait for a device.
  using read_function = std::function<void(std::span<const float>)>;
  void read_weights(const read_function& to) const { read_arena(weights(), to); }
  void read_gradients(const read_function& to) const { read_arena(gradients(), to); }
  // Returns the gradients of the rows that were last set for sparse table `t`, one row after the other in the order of
  // tables().rows()[t]. Empty on a rank that is no worker, and with ghosts. Call it between steps.
  std::span<const float> row_gradients(std::uint32_t t) const;
  // Checks the guards before and behind each region. Returns the place of the first write there, such as "memory behind
  // the gradients"; std::nullopt if there is none. Call it between steps; waits for a device.
  std::optional<std::string> find_damage() const;
  // Returns whether any step below `end` has a learning rate above 0, so that its update changes weights.
  bool learns_before(std::uint64_t end) const;
  // [loop] Returns the bytes of the sends and collectives that the transport has accepted since the start, in the type
  // of memory. Receives and messages to the own rank do not count.
  std::uint64_t given_bytes() const { return transfers_.given_bytes(); }
  // Returns the host address of a buffer of the strategy. Requires that it is on the host.
  void* address(const rg_buffer& b) const { return regions_.address(b); }
  // Returns the sums over workers within a step. Requires a worker, and step_numbers above 0 in the setup.
  step_sums& sums() { return *sums_; }
  sparse_tables& tables() { return *tables_; }
  const sparse_tables& tables() const { return *tables_; }
  // [any] Returns, for each bucket, the end of its elements in the arena, ascending; the last is the arena's end. Does
  // not change after start(). Empty if there are no dense weights.
  std::span<const std::uint64_t> bucket_ends() const { return buckets_.ends(); }

  // [loop] Begins an activity of the strategy. Its end comes at once, or during a later poll(); done() returns whether
  // the activity is over or never began. In each step: begin_step, gradients_ready() up to the arena's end, end_step.
  // begin_step and pull_rows use the rows that were last set in tables(). `step` is ignored by serve, finish and
  // pull_rows. Throws failure if the activity fails before it waits for anything, (plugin) if the strategy has no
  // pull_rows(), and as require_success() if anything failed before; a later failure makes poll() throw.
  void begin(activity a, std::uint64_t step);
  bool done(activity a) const { return !running_[a]; }
  // [loop] Throws the first failure that the strategy reported, even if begin() or poll() threw it before. Call it once
  // more before the result is computed: a strategy may report a failure outside of begin() and poll().
  void require_success() const;
  // [loop] Passes the strategy's state for a checkpoint to the functions of `s`, or from them: rg_strategy.save and
  // load. `step` is the number of completed steps. Call save() between steps, while no message is under way; load() at
  // most once, after start() and before the first begin(), with weights and optimizer state in place. Does nothing for
  // a strategy without these functions. Throws failure with the plugin's text.
  void save(std::uint64_t step, const rg_state& s) { move_state(setup_.strategy->save, step, s); }
  void load(std::uint64_t step, const rg_state& s) { move_state(setup_.strategy->load, step, s); }
  // [loop] Says that a rank is gone (rg_strategy.left). Does nothing for a strategy without this function. Throws
  // failure with the plugin's text.
  void left(std::uint32_t rank) {
    if (setup_.strategy->left) check_status(setup_.strategy->left(self_, rank), "left");
  }
  // [compute] Declares that elements [0, end) of the arena hold this step's gradients; on a device, once `fence` has
  // passed. `end` only grows within a step. poll() and begin(end_step) report complete buckets to the strategy.
  // Lock-free.
  void gradients_ready(std::uint64_t end, rg_fence fence = 0) noexcept { buckets_.gradients_ready(end, fence); }
  // [loop] Runs one round: moves bytes, and reports completions and complete buckets to the strategy. Waits at most
  // `timeout_ns` for an event and spins for the first `spin_ns` of it. Returns whether it reported anything to the
  // strategy; bytes may have moved although it returns false. Throws failure: of the transport, the strategy or an
  // operation.
  bool poll(std::uint64_t timeout_ns, std::uint64_t spin_ns);
  // [loop] Returns when the next timer (or, under virtual time, operation) of the strategy is due, in ns on the
  // transport's virtual clock if it has one, else on the monotonic clock. UINT64_MAX: there is none.
  std::uint64_t next_timer() const { return operations_.next_timer(); }
  // [loop] Returns whether poll() must still be called: an operation or timer is pending, or serve is not over.
  bool busy() const { return transfers_.outstanding() || !operations_.empty() || running_[serve]; }

  // [loop] Describes the pending operations, for messages to people.
  std::vector<transfers::open_operation> open_operations() const {
    auto open = transfers_.open();
    if (operations_.has_functions())
      open.push_back({"a function of the strategy's own", UINT32_MAX, 0, 0, false, false});
    return open;
  }
  // [any] Returns the `end` of the last gradients_ready() in this step; 0: there was none. Lock-free.
  std::uint64_t gradients_ready_to() const noexcept { return buckets_.ready_to(); }

  // [any] Returns the first element of the arena from which on the model may read weights; the weights before it have
  // not arrived yet. 0: all have arrived. Lock-free.
  std::uint64_t weights_from() const noexcept { return weights_from_.load(std::memory_order_acquire); }
  // [any] Returns the fence after which a device may read those weights and write gradients; 0 without a device. Call
  // it after weights_from() or after the end of an activity. Lock-free.
  rg_fence weights_after() const noexcept { return weights_after_.load(std::memory_order_acquire); }
  // [loop] Waits until a device has completed all enqueued work, the model's gradients included. Do not call it within
  // a step. Does nothing without a device.
  void synchronize();

  // [loop] The values that the strategy recorded since the last call of forget_records().
  const strategy_records& records() const { return records_; }
  void forget_records() { records_ = {}; }

  // [loop] Return the wall time of the optimizer's work in this role since construction, in ns; of work on a device,
  // only that of enqueueing it.
  std::uint64_t worker_update_ns() const { return updates_->ns(false); }
  std::uint64_t server_update_ns() const { return updates_->ns(true); }
  // [loop] Replaces the content of `out` by the device's begin and end marks of each update as worker since the last
  // call, at most the first 600. `out` is empty without a device or if the device has no timing marks.
  void collect_update_spans(std::vector<device::span>& out) { updates_->collect_spans(out); }
  // Returns the bytes of optimizer state for the arena elements that this rank owns in either role, together, without
  // sparse tables.
  std::uint64_t optimizer_state_bytes() const { return updates_->state_bytes(); }

private:
  void lay_out();
  template <class F> static rg_status guarded(void* self, F&& f);
  void set_memory_functions(); // of host_
  void set_operation_functions();
  void set_record_functions();
  // Execute an operation of the strategy; submit() also records it in the trace. Return RG_DONE if it has ended, RG_OK
  // if its completion follows.
  rg_status submit(const rg_op& op);
  rg_status execute(const rg_op& op);
  // Returns the bucket of the arena that a buffer of weights or gradients belongs to; no_bucket for others.
  std::uint32_t bucket_of(const rg_buffer& b) const;
  // These throw failure (plugin), which guarded() turns into a refusal: require_creating() if the strategy has been
  // created, so that `what` is too late; require_role() if this rank is none of `role` (RG_ROLE_*), else it returns
  // whether that is the server's.
  void require_creating(const char* what) const;
  bool require_role(const char* what, std::uint32_t role) const;
  // Returns whether the strategy's talks() connects this rank with `peer`, or `peer` is this rank.
  bool talks_to(std::uint32_t peer);
  rg_buffer own(std::uint32_t role, std::uint64_t first, std::uint64_t count); // rg_strategy_host.own
  void accept_norm(const rg_op& op, const rg_buffer& pair);
  rg_status transfer(const rg_op_transfer& o);
  bool transport_reaches(const rg_buffer& b) const; // whether it can access the memory
  rg_status collective(const rg_op_collective& o);
  bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const;
  rg_status apply(const rg_op_apply& o);
  rg_status norm(const rg_op_norm& o);
  rg_status commit(const rg_op_commit& o);
  void commit(bool server, const double* total, std::uint64_t step);
  void add_norm_of_rows(bool server, double* pair); // to the norm of the arena, in the memory of the arena
  template <class Op> rg_status rows(const Op& o);
  void record_weights_fence(); // sets weights_after_
  bool report_ready_buckets(); // calls on_gradient; returns whether a bucket was ready
  void check_status(rg_status status, const char* what);
  void move_state(rg_status (*slot)(void*, std::uint64_t, const rg_state*), std::uint64_t step, const rg_state& s) {
    if (slot) check_status(slot(self_, step, &s), "checkpoint");
  }
  void read_arena(std::span<const float> all, const read_function& to) const;
  std::string name_of_buffer();
  void end_activity(std::uint64_t which, rg_status status); // rg_strategy_host.done
  void fail(const std::function<void()>& throws) noexcept;  // keeps the first failure

  strategy_host_setup setup_;
  plugin_host plugin_host_; // of the strategy
  rg_strategy_host host_{};
  rg_collectives collectives_{}; // of the transport; null functions: it has none
  std::vector<collective_group> groups_;
  void* self_ = nullptr; // the strategy
  bool created_ = false;
  std::vector<std::optional<bool>> talks_; // by rank, from the first transfer on: what talks() returned

  device* device_;
  local_operations operations_;
  bool reaches_; // whether the transport can access the arena
  region_table regions_;
  std::unique_ptr<staging> on_host_, on_device_; // on_device_ is null without a device
  const std::uint32_t first_lane_;               // of the strategy
  transfers transfers_;
  std::optional<step_sums> sums_;

  std::vector<rg_slice> slices_; // of arena_
  rg_arena arena_{};
  gradient_buckets buckets_;
  update_rule rule_; // for tables_
  std::unique_ptr<sparse_tables> tables_;
  std::unique_ptr<weight_updates> updates_;
  std::array<device::host_memory, 2> norm_of_rows_; // as worker, as server: being copied to the device until the COMMIT
  std::atomic<std::uint64_t> weights_from_{0};
  std::atomic<rg_fence> weights_after_{0};

  std::uint64_t step_ = 0;
  std::array<bool, 6> running_{}; // by activity
  std::exception_ptr failure_;    // the first one
  std::vector<rg_completion> completions_, delivering_;
  strategy_records records_;
  std::uint32_t buffers_ = 0; // number that the strategy allocated
};

} // namespace regatta

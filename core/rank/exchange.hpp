// SPDX-License-Identifier: Apache-2.0
//
// One rank's strategy at work: the host that a strategy sees (abi.h, rg_strategy_host) over any transport. It knows
// nothing of threads, processes or models, so the same code drives real ranks and a thousand simulated ones.
#pragma once

#include "config/experiment.hpp"
#include "device/device.hpp"
#include "device/host.hpp"
#include "device/staging.hpp"
#include "measure/record.hpp"
#include "memory/regions.hpp"
#include "optimizer/optimizer.hpp"
#include "rank/tables.hpp"
#include "rank/transfers.hpp"
#include "registry/plugin_host.hpp"

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

// Who takes part, with the arrays that rg_cluster points to.
struct cluster_layout {
  std::uint32_t workers = 1, servers = 0;
  std::vector<std::uint32_t> server_rank, host_of;

  // Ranks 0 .. workers-1 are workers; server k gets rank workers + k, or, co-located, rank k while there are workers.
  // Workers lie on `hosts` hosts in blocks, and so do the servers with ranks of their own.
  static cluster_layout make(std::uint32_t workers, std::uint32_t servers, bool colocate, std::uint32_t hosts = 1);
  std::uint32_t size() const { return static_cast<std::uint32_t>(host_of.size()); }
  // `rank` UINT32_MAX: nobody's view, for plan() and talks(). Points into this object.
  rg_cluster view(std::uint32_t rank) const;
};

// Whether any two ranks exchange messages. `all` is nobody's view.
bool talks(const rg_strategy& strategy, const rg_value* values, const rg_cluster& all);

// plan() with its gaps filled: at least one lane, a period of at least 1. Throws failure, also
// where the plan contradicts itself.
rg_plan plan_of(const rg_strategy& strategy, const rg_value* values, const cluster_layout& layout,
                const optimizer_config& config, plugin_host& host, const std::string& id);

// Splits `config` for a strategy that does the momentum itself (RG_PLAN_MOMENTUM): what the engine goes on doing is plain
// SGD, the coefficient is returned. 0 and no change for other strategies. Throws failure (usage) for a rule that cannot
// be split so.
double hand_over_momentum(const rg_plan& plan, const std::string& strategy_id, optimizer_config& config);

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
  std::uint32_t rank, lanes;
  std::vector<rg_tensor> tensors;  // of the model; dense ones make the arena, ROWS ones the tables
  std::uint64_t micro_batches = 1; // of a step: their rows share the windows of the tables
  bool rows_in_place = false;      // the model can read rows of tables where they lie
  optimizer_config optimizer;
  std::uint64_t seed;
  double momentum = 0; // handed over to a strategy that does it itself; `optimizer` then has none
  bool ghosts = false;
  regatta::device* device = nullptr; // where all is but the rows of tables; null: on the host. Outlives the exchange
  // Writes the start of elements [first, first + count) of the arena: for what a server owns. Null with ghosts.
  std::function<void(std::uint64_t first, std::uint64_t count, float* out)> initial_weights;
  // Likewise of rows of a table; also called when a row is first asked for. [loop]
  tables::init_function initial_rows;
  plugin_host::log_function log;
  std::string link; // what "regatta.link/1" says to the strategy; empty: there is none, under virtual time
};

class exchange {
public:
  enum activity : std::uint64_t { begin_step = 1, end_step = 2, serve = 3, finish = 4, pull_rows = 5 };

  // [main] Lays out the arena and registers it; start() makes the strategy, when weights are in place.
  explicit exchange(exchange_setup setup);
  ~exchange();
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;
  void start();

  const rg_arena& arena() const { return arena_; }
  // Empty on a rank that is no worker, and with ghosts. On a device the host must not touch them.
  std::span<float> weights() const;
  std::span<float> gradients() const;
  // Shows the weights, or the gradients, to host code, piece by piece from the first on. Between steps; waits for a device.
  using show_function = std::function<void(std::span<const float>)>;
  void show_weights(const show_function& to) const { show(weights(), to); }
  void show_gradients(const show_function& to) const { show(gradients(), to); }
  // The gradients of the rows of table `t` that the step touched. Between steps.
  std::span<const float> row_gradients(std::uint32_t t) const;
  // Memory that somebody wrote though it belongs to no buffer, by name; nothing: none. Between steps; waits for a device.
  std::optional<std::string> find_damage() const;
  // Whether a step before `end` has a learning rate above 0, so that its update moves weights.
  bool learns_before(std::uint64_t end) const;
  // Bytes that the strategy gave to the transport, since the start. [loop]
  std::uint64_t given_bytes() const { return transfers_.given_bytes(); }
  regatta::tables& tables() { return *tables_; }
  const regatta::tables& tables() const { return *tables_; }
  std::span<const std::uint64_t> bucket_ends() const { return bucket_ends_; }

  // [loop] Begins one of the strategy's activities; done() says when it is over. begin_step and pull_rows are about the
  // rows last set in tables(). Throws failure where the activity fails before it waits for anything; one that fails later
  // makes poll() throw.
  void begin(activity a, std::uint64_t step);
  bool done(activity a) const { return !running_[a]; }
  // [loop] Throws the first failure that the strategy reported, also if begin() or poll() threw it before. Call it once
  // more before a result is made: a strategy may report outside of both.
  void require_success() const;
  // [compute] Elements [0, end) of the arena hold the gradients of the step, on a device once `fence` has passed; poll()
  // passes it on. Lock-free.
  void gradients_ready(std::uint64_t end, rg_fence fence = 0) noexcept;
  // [loop] One round: moves bytes, tells the strategy what ended and which buckets are full. Waits at most `timeout_ns`
  // for something to happen, spinning for `spin_ns` of it; false: nothing did. Throws failure.
  bool poll(std::uint64_t timeout_ns, std::uint64_t spin_ns);
  // [loop] When the next timer is due; UINT64_MAX: none.
  std::uint64_t next_timer() const;
  // [loop] Whether anything is under way that could need the loop.
  bool busy() const { return transfers_.outstanding() || !timers_.empty() || !awaited_.empty() || running_[serve]; }

  // [loop] What is under way, for people.
  std::vector<transfers::open_operation> open_operations() const { return transfers_.open(); }
  // [any] Elements [0, this) of the arena have their gradients of this step. Lock-free.
  std::uint64_t gradients_ready_to() const noexcept { return ready_.load(std::memory_order_relaxed); }

  // [any] Elements from here on may be read by the model; what lies before is still coming. Lock-free.
  std::uint64_t weights_from() const noexcept { return weights_from_.load(std::memory_order_acquire); }
  // [any] On a device, once this has passed; to be asked for after weights_from() or the end of an activity.
  rg_fence weights_after() const noexcept { return weights_after_.load(std::memory_order_acquire); }
  // [loop] Waits until a device has done all that was asked of it. Not within steps.
  void settle();

  // [loop] What the strategy reported since the last call of forget_records.
  const strategy_records& records() const { return records_; }
  void forget_records() { records_ = {}; }

  // [loop] Time spent updating weights since the start, as a worker and as a server.
  std::uint64_t worker_update_ns() const { return update_ns_[0]; }
  // When a device that tells times did the worker's updates, since the last call: the first 600. `out` is kept for the
  // next ones.
  void take_updates(std::vector<device::span>& out);
  std::uint64_t server_update_ns() const { return update_ns_[1]; }
  // What the optimiser keeps for the elements that this rank owns in both roles; tables apart.
  std::uint64_t optimizer_state_bytes() const {
    return worker_optimizer_->state_bytes() + server_optimizer_->state_bytes();
  }

private:
  struct timer {
    std::uint64_t at, order, cookie, bytes;
    bool operator>(const timer& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  // What ends when the device has got to `fence`: a SELECT, whose size somebody waits for, and a COMMIT, whose norm the
  // host has to see.
  struct awaited {
    rg_op op;
    rg_fence fence;
    device::host_memory seen; // the number found; the norm
  };
  void lay_out();
  std::uint64_t now() const;
  rg_status submit(const rg_op& op);
  rg_status own(bool as_server, std::uint64_t first, std::uint64_t count, rg_buffer* out);
  rg_status transfer(const rg_op& op);
  rg_status collective(const rg_op& op);
  // What does it, null where nothing does, and its name.
  std::pair<transfers::collective_function, const char*> native(std::uint32_t kind) const;
  processor& unit_of(const rg_buffer& b); // that computes where it is
  bool in_one_memory(const rg_op& op) const;
  void add_norm_of_rows(bool as_server, double* pair);
  rg_status arithmetic(const rg_op& op);
  rg_status compute(const rg_op& op, rg_work& work);
  rg_status compute(const rg_op& op, rg_work& work, std::uint64_t bytes); // and is worked()
  void order(const rg_op& op);
  void order(const rg_buffer& buffer);
  void mark_weights();
  void await(const rg_op& op, device::host_memory seen);
  device::host_memory pinned_pair();
  void end_awaited();
  rg_status convert(const rg_op& op);
  rg_status select(const rg_op& op);
  rg_status update(const rg_op& op);
  template <class F> void timed(bool as_server, F&& f); // work of the optimiser, its times in updates_
  void commit(const rg_op& op, const double* total);
  rg_status rows(const rg_op& op);
  // The end of work on `bytes` of memory: at once, or, under a virtual clock, after the time it takes.
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
  processor& unit_; // where the arena is: the host or the device
  bool reaches_;    // whether the transport can touch it
  region_table regions_;
  std::unique_ptr<staging> on_host_, on_device_; // the latter null without a device
  transfers transfers_;
  std::vector<rg_slice> slices_;
  rg_arena arena_{};
  std::unique_ptr<optimizer> worker_optimizer_, server_optimizer_;
  update_rule rule_; // of tables_
  std::unique_ptr<regatta::tables> tables_;
  rg_collectives collectives_{};
  rg_strategy_host host_{};
  void* self_ = nullptr;

  std::vector<std::uint64_t> bucket_ends_;
  std::vector<rg_fence> bucket_fences_; // [compute] writes, before ready_
  std::size_t fenced_ = 0;              // [compute] buckets of this step that have theirs
  std::uint32_t ordered_ = 0;           // buckets of this step that what is computed now comes after
  std::atomic<std::uint64_t> ready_{0};
  std::uint64_t step_ = 0;
  std::uint32_t next_bucket_ = 0;
  bool stepping_ = false; // between begin(begin_step) and the end of end_step
  std::array<bool, 6> running_{};
  std::exception_ptr failure_; // the first
  std::priority_queue<timer, std::vector<timer>, std::greater<>> timers_;
  std::uint64_t timer_order_ = 0;
  std::vector<rg_completion> completions_, delivering_;
  std::array<std::uint64_t, 2> update_ns_{};
  std::atomic<std::uint64_t> weights_from_{0};
  std::atomic<rg_fence> weights_after_{0};
  std::vector<awaited> awaited_;
  std::vector<device::host_memory> pinned_;         // for awaited_
  std::array<device::host_memory, 2> norm_of_rows_; // as worker, as server: on its way to the device until the COMMIT
  strategy_records records_;
  std::uint32_t buffers_ = 0; // that the strategy asked for
};

} // namespace regatta

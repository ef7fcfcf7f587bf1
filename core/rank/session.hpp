// SPDX-License-Identifier: Apache-2.0
//
// Everything that one rank holds during a run: plugins, transport connected to the peers, model, exchange. [main]
// except where noted. The functions throw failure: a plugin's own (registry/plugin_host.hpp), or run if the case ends
// while a collective call on the control channel waits.
#pragma once

#include "control/client.hpp"
#include "data/source.hpp"
#include "rank/job.hpp"
#include "rank/model.hpp"
#include "rank/state_report.hpp"
#include "registry/transport_host.hpp"
#include "runtime/strategy_host.hpp"

#include <atomic>
#include <memory>
#include <optional>

#include <regatta/device.h>

namespace regatta {

class session {
public:
  // Loads the plugins and asks the strategy for its plan. `control` must outlive the session.
  session(control_client& control, rank_job job, std::uint32_t rank);
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  control_client& control;
  const rank_job job;
  const std::uint32_t rank;
  const rg_cluster cluster;

  // Creates the model, connects to the peers, initialises the weights, and starts the strategy. Collective on the
  // control channel: all ranks call it once, before everything below.
  void open();
  // Closes the transport after everything that was sent has arrived, or after 10 s. Requires that no operation is
  // pending; do not call it after an error.
  void close();

  model_instance& model() { return *model_; }
  data_source& data() { return *data_; } // workers only
  bool synchronous() const { return plan_.flags & RG_PLAN_SYNCHRONOUS; }
  // Returns whether all workers have the same weights after finish().
  bool agrees() const { return plan_.flags & (RG_PLAN_SYNCHRONOUS | RG_PLAN_AGREES); }
  // Returns how many steps a worker may be ahead of the slowest (0: synchronous); std::nullopt: any number.
  std::optional<std::uint64_t> bound() const {
    if (synchronous()) return 0;
    return plan_.flags & RG_PLAN_BOUNDED ? std::optional(plan_.bound) : std::nullopt;
  }
  regatta::exchange& exchange() { return *exchange_; }
  const regatta::exchange& exchange() const { return *exchange_; }
  // [loop] Returns the transport's counters since open(); all 0 if it has none.
  rg_counters counters();
  state_report& report() { return report_; }
  // [any] Makes the exchange's poll return. Does nothing before the transport exists.
  void wake();
  // Averages the state tensors (such as running statistics) over the workers. Collective on the control channel: ranks
  // that are no workers call evaluation::attend() instead. Waits for a device.
  void average_states();
  // [loop] Throws failure (plugin) if memory outside of a buffer or a tensor was written, states included; see
  // inspection.hpp. Call it while nothing is pending; waits for a device.
  void require_no_damage(const std::string& when);
  // Returns the device that holds the weights and computes the model; null: the host.
  regatta::device* device() { return device_.get(); }
  // Returns the warnings that the strategy has logged since open(), for the result.
  const std::vector<std::string>& strategy_warnings() const { return strategy_warnings_; }

private:
  void connect();
  double epoch_steps();
  std::string link() const;
  void load_weights();
  void fill_shard(std::uint64_t first, std::uint64_t count, float* out);

  registry plugins_;
  plugin_host::log_function log_;
  rg_authenticate authenticate_{};
  rg_place place_{}; // of this rank's tensors
  regatta::transport_host transport_host_;
  plugin_host strategy_host_;
  const component &strategy_, &transport_;
  parameter_values strategy_values_, transport_values_;
  std::vector<std::uint32_t> peers_;
  rg_world world_{};
  rg_transport_caps caps_{};
  std::atomic<void*> transport_self_{nullptr}; // atomic: other threads call wake()
  rg_plan plan_{};
  std::unique_ptr<regatta::device> device_;           // outlives the members that hold its memory
  std::unique_ptr<model_instance> model_, row_model_; // row_model_ initialises rows on the loop while model_ computes
  std::unique_ptr<data_source> data_;
  std::unique_ptr<regatta::exchange> exchange_;
  state_report report_;
  host_processor host_memory_;
  std::vector<std::span<float>> states_; // by tensor, on the model's device; empty for other tensors
  std::vector<std::string> strategy_warnings_;
  std::uint32_t filled_tensor_ = UINT32_MAX; // last tensor of fill_shard(), complete: the next range often begins in it
  std::vector<float> filled_;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Everything that one rank holds during a run: plugins, transport connected to the peers, model, exchange. All ranks
// must create them in the same order, because the steps in between are collective on the control channel. [main]
#pragma once

#include "control/client.hpp"
#include "data/source.hpp"
#include "rank/exchange.hpp"
#include "rank/job.hpp"
#include "rank/model.hpp"
#include "rank/state_report.hpp"
#include "registry/transport_host.hpp"

#include <atomic>
#include <memory>
#include <optional>

#include <regatta/device.h>

namespace regatta {

class session {
public:
  session(control_client& control, rank_job job, std::uint32_t rank);
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  control_client& control;
  const rank_job job;
  const std::uint32_t rank;
  const rg_cluster cluster;

  // Connects to the peers, creates the model, initialises the weights, and starts the strategy.
  void open();
  // Closes the transport in order, once everything that was sent has arrived. Do not call it after an error.
  void close();

  model_instance& model() { return *model_; }
  data_source& data() { return *data_; } // workers only
  bool synchronous() const { return plan_.flags & RG_PLAN_SYNCHRONOUS; }
  // Returns whether all workers have the same weights after finish().
  bool agrees() const { return plan_.flags & (RG_PLAN_SYNCHRONOUS | RG_PLAN_AGREES); }
  // Returns how many steps a worker may be ahead of the slowest; std::nullopt: any number.
  std::optional<std::uint64_t> bound() const {
    if (synchronous()) return 0;
    return plan_.flags & RG_PLAN_BOUNDED ? std::optional(plan_.bound) : std::nullopt;
  }
  regatta::exchange& exchange() { return *exchange_; }
  const regatta::exchange& exchange() const { return *exchange_; }
  rg_counters counters();
  state_report& report() { return report_; }
  // [any] Makes the exchange's poll return.
  void wake();
  // Averages the state tensors (such as running statistics) over the workers. Call it on all workers at once; waits for
  // a device.
  void average_states();
  // [loop] Throws failure (plugin) if memory outside of a buffer or a tensor was written, states included; see
  // inspection.hpp. Call it while nothing is pending; waits for a device.
  void require_no_damage(const std::string& when);
  // Returns the device that holds the weights and computes the model; null: the host.
  regatta::device* device() { return device_.get(); }
  // Returns the strategy's warnings, for the result.
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

// SPDX-License-Identifier: Apache-2.0
//
// Everything that one rank holds during a run: plugins, transport connected to the peers, model, strategy host. [main]
// except where noted. The functions throw failure: by the status of a plugin's function, with its text (RG_E_CONFIG
// usage, RG_E_UNSUPPORTED skipped, RG_E_PLUGIN plugin, others run), or run if the case ends while a collective call on
// the control channel waits. The constructor also throws plugin if a plugin is missing, and usage if a parameter is
// wrong; open() what model_instance, make_source() and connected_transport throw, usage if the transport cannot carry
// the model's rows or sums, and run if ranks lay out the weights in different ways.
#pragma once

#include "control/client.hpp"
#include "data/source.hpp"
#include "rank/job.hpp"
#include "rank/model.hpp"
#include "rank/model_memory.hpp"
#include "rank/state_report.hpp"
#include "runtime/connected_transport.hpp"
#include "runtime/strategy_host.hpp"
#include "trace/recorder.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <regatta/ext/device.h>
#include <regatta/ext/step_collectives.h>

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
  const rg_cluster cluster; // as this rank sees it

  // Creates the model, connects to the peers, initialises the weights, and starts the strategy. Collective on the
  // control channel: all ranks call it once, before everything below.
  void open();
  // Waits until everything that was sent has arrived, at most 10 s, and closes the transport. Requires that no
  // operation is pending.
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
  strategy_host& strategy() { return *strategy_host_; }
  const strategy_host& strategy() const { return *strategy_host_; }
  connected_transport& transport() { return transport_; }
  state_report& report() { return report_; }
  // [loop] Runs one round of the strategy, which waits at most 250 ms, and publishes progress (state_report::poll()).
  void poll(std::uint64_t spin_ns) { report_.poll(*strategy_host_, spin_ns); }
  // [any] Makes strategy_host::poll() return. Does nothing before the transport exists.
  void wake() { transport_.wake(); }
  // Averages the model's state tensors over the workers. Collective on the control channel. Waits for a device.
  void average_states() { model_memory_->average_states(control, cluster.workers); }
  // [loop] Throws failure (plugin) if memory outside of a buffer or a tensor was written, states included: a guard
  // around a region has changed, or the padding behind a tensor is not zero. `when` begins the text: "after warm-up".
  // Call it while nothing is pending; waits for a device.
  void require_no_damage(const std::string& when);
  // Returns the recorder of this rank's trace; null: the run has none.
  trace_recorder* trace() { return trace_.get(); }
  // Returns the device that holds the weights and computes the model; null: the host.
  regatta::device* device() { return device_.get(); }
  // [compute] Serves rg_step_collectives.all_reduce; the worker sets it before the first step.
  std::function<rg_status(const char* name, std::span<double> numbers)> sum_over_workers = [](auto, auto) {
    return rg_status{RG_E_PLUGIN};
  };
  // Returns the warnings that the strategy has logged since open(), for the result.
  const std::vector<std::string>& strategy_warnings() const { return strategy_warnings_; }

private:
  const void* extension(std::string_view id);
  const void* trace_extension(std::string_view id, event_origin origin) const;
  void create_model();
  void require_one_layout();
  void connect();
  strategy_host_setup host_setup();
  double epoch_steps();

  registry plugins_;
  std::unique_ptr<trace_recorder> trace_; // outlives the plugins' instances, which record spans
  plugin_host::log_function log_;
  rg_arena_memory place_{}; // of this rank's tensors
  plugin_host strategy_plugin_host_;
  const component& strategy_component_;
  parameter_values strategy_values_;
  connected_transport transport_;
  rg_plan plan_{};
  rg_step_collectives collectives_{};                 // of the model's host
  std::uint64_t step_numbers_ = 0;                    // that the model has reserved
  std::unique_ptr<regatta::device> device_;           // outlives the members that hold its memory
  std::unique_ptr<model_instance> model_, row_model_; // row_model_ initialises rows on the loop while model_ computes
  std::unique_ptr<model_memory> model_memory_;
  std::unique_ptr<data_source> data_;
  std::unique_ptr<strategy_host> strategy_host_;
  state_report report_;
  std::vector<std::string> strategy_warnings_;
};

} // namespace regatta

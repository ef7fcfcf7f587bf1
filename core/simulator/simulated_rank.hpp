// SPDX-License-Identifier: Apache-2.0
//
// One rank of a simulation: a strategy with its host and, for a worker, a model that takes virtual time.
#pragma once

#include "simulation.hpp"
#include "step_trace.hpp"

#include "cluster/layout.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace regatta {

class simulated_rank {
public:
  // Borrows everything; `values` are the strategy's parameters. `cores`: null if computing loses nothing.
  simulated_rank(const simulation_setup& setup, const component& strategy, const rg_value* values,
                 const cluster_layout& layout, const rg_plan& plan, virtual_network& network, std::uint32_t rank,
                 shared_cores* cores);

  // Does what can be done now. Returns whether anything happened; then call it again.
  bool advance();
  // Tells this rank that others are gone, and lets it go on.
  void go_on_without(const std::vector<std::uint32_t>& gone);
  bool over() const { return phase_ == phase::over; }
  bool may_stop() const { return over() || !is_worker(); } // a server waits for the next step
  // Returns this rank's part of a checkpoint. Call it when no rank can go on.
  simulated_checkpoint::rank save();
  // Throws failure if the strategy's own code wrote outside of its buffers or into a tensor's padding.
  void require_no_damage() const;
  // Returns the time of its next event that is not a message; UINT64_MAX: there is none.
  std::uint64_t next_event() const;
  std::vector<float> weights() const { return {strategy_->weights().begin(), strategy_->weights().end()}; }
  const std::vector<std::uint64_t>& checksums() const { return checksums_; }
  const std::vector<simulated_step>& steps() const { return times_; }
  std::uint64_t steps_ended() const { return step_; } // of a worker
  bool is_worker() const { return cluster_.worker >= 0; }
  // Returns where a rank is that has not ended: "end_step of step 3".
  std::string where() const;
  const strategy_records& records() const { return strategy_->records(); }
  std::uint64_t state_bytes() const { return strategy_->optimizer_state_bytes(); }
  const row_table* table(bool as_server) const {
    return setup_.table_rows ? strategy_->tables().shard(as_server, 0) : nullptr;
  }

private:
  enum class phase { beginning, reading, computing, ending, pulling, finishing, over };

  float first_weight(std::uint32_t rank, std::uint64_t element) const;
  void load();
  void set_rows(std::uint64_t step);
  void compute_table();
  void compute_times_of_step(); // sets computing_
  void begin_step();
  void compute_for(std::uint64_t ns);
  std::uint64_t computed_at() const { return cores_ ? std::max(next_at_, cores_->end(rank_)) : next_at_; }
  bool computes() const { return network_.now() < computed_at(); }
  void note_lost(std::size_t part); // of simulated_step::lost: what computing has lost since the last call
  void read_tensor(std::size_t t);
  void fill_gradients(std::span<float> g, const rg_slice& s);
  void require_unchanged(std::uint64_t first) const; // throws if weights from `first` on are not those that were read
  void compute_tensor();
  void end_step();

  const simulation_setup& setup_;
  rg_cluster cluster_;
  step_trace trace_;
  std::vector<char> padding_; // by element of the arena; empty with ghosts
  plugin_host host_;
  // Each event of the rank needs these: they are in one cache line or two.
  virtual_network& network_;
  shared_cores* cores_;
  std::unique_ptr<strategy_host> strategy_;
  std::uint32_t rank_;
  phase phase_ = phase::beginning;
  bool forward_ = false; // the forward pass has begun
  std::uint64_t step_ = 0, next_at_ = 0, computes_since_ = 0;

  compute_times computing_; // of this step
  std::vector<simulated_step> times_;
  std::uint64_t noted_ = 0;                                          // of note_lost()
  std::uint64_t steps_ = setup_.stays ? setup_.stays : setup_.steps; // when this rank stops
  std::size_t tensor_ = 0;
  int pulls_ = 0;
  std::vector<std::array<std::int64_t, 2>> table_shapes_;
  std::vector<std::vector<std::uint64_t>> touched_; // by table
  std::vector<float> constant_;                     // with setup_.constant: the gradients from step late_steps on
  std::vector<float> seen_;                         // weights at the begin of the step
  std::vector<std::uint64_t> checksums_;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// All ranks of one strategy in one process, under virtual time: the engine's own strategy_host over a virtual network,
// with a model that is a formula. Its gradient depends on the weights that it reads, so weights that arrive late, early
// or from another step change the result. One thread; simulations of several threads do not share anything.
//
// To predict a run, set `ghosts` (buffers without bytes), `compute` (the model's times), `work` (those of the
// optimizer and of other operations), and in `network` order = shared, links, overheads and gap. The result's `steps`
// has the times of each worker's steps. `fold` simulates one rank for all that are alike.
#pragma once

#include "shared_cores.hpp"
#include "virtual_network.hpp"

#include "registry/registry.hpp"
#include "runtime/strategy_host.hpp"
#include "runtime/virtual_work.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

class goal_recorder;
struct steps_to_trace;

// The state from which a run can go on, by rank.
struct simulated_checkpoint {
  struct rank {
    std::vector<float> weights;                                        // of a worker: the whole arena
    std::vector<std::pair<std::string, std::vector<std::byte>>> state; // what the strategy saved, in its order
  };
  std::uint64_t step = 0; // the next one
  std::vector<rank> ranks;
};

// The computing times of one step of a worker, in ns; tensors in the order of simulation_setup::tensors, in which their
// gradients become ready. Waiting is not part of them: the simulation adds it.
struct compute_times {
  std::uint64_t before = 0; // before the forward pass, after the activity of begin_step: input
  // The forward pass reads tensors from the last to the first: forward[t] is the time from when it reads the weights of
  // tensor t until it needs those of tensor t - 1, or begins with the backward pass.
  std::vector<std::uint64_t> forward;
  // backward[t] is the time until the gradients of tensor t are ready, since those of tensor t - 1 or the begin of the
  // backward pass.
  std::vector<std::uint64_t> backward;
  // After the last tensor's gradients, until those of the rows of sparse tables are ready; all computing of a model
  // that has no tensors but these.
  std::uint64_t after = 0;
};
// Writes the times of a worker's step to `out`, whose vectors have an element for each tensor. Called once for each
// step that is simulated, in any order of workers; depends on its arguments alone.
using compute_function = std::function<void(std::uint32_t worker, std::uint64_t step, compute_times& out)>;

// A sparse table of ghosts: the numbers of its rows have bytes, their values have none.
struct ghost_table {
  std::int64_t rows = 0, row = 0; // elements of a row
  std::uint64_t most = 0;         // of the rows that a worker touches in a step
};
// Writes the rows of a table that a worker touches in a step to `out`, ascending, each once. Depends on its arguments
// alone.
using rows_function =
    std::function<void(std::uint32_t worker, std::uint64_t step, std::uint32_t table, std::vector<std::uint64_t>& out)>;

// When a worker's step began and ended, in virtual ns.
struct simulated_step {
  std::uint64_t begin = 0;    // of begin_step
  std::uint64_t forward = 0;  // the forward pass began, after compute_times::before
  std::uint64_t backward = 0; // the backward pass began; more than the sum of `forward` times later: it waited
  std::uint64_t computed = 0; // the last gradient was ready: begin of end_step
  std::uint64_t end = 0;      // of end_step
  // The ns that computing lost to work on the same cores: before the forward pass, in it, and in the backward pass.
  std::array<std::uint64_t, 3> lost{};
  bool operator==(const simulated_step&) const = default;
};

enum class folding : std::uint8_t {
  off, // every rank is simulated
  // Ranks that are alike have one history: where the strategy declares a symmetry (rg_plan.symmetry), only one of each
  // class is simulated. Its messages are delivered for the others, too. Workers are alike if the strategy says so, and
  // if they have the same link, cores, kind, delay and number of servers (0 or 1) on their rank. Of ranks that share a
  // link or cores, such as those of a host, all are simulated, for those of all hosts alike. The result is that of
  // `off`, to the ns, as long as the lengths of messages are: if buckets cannot be cut into equal parts, the error is
  // at most 128 bytes a message (simulation_result::rounded). All ranks are simulated, with simulation_result::whole =
  // why, where they cannot be alike: without ghosts, with sparse tables, on hosts that differ, ... So they are if
  // the folded simulation fails or leaves messages without a receive. This happens when a bucket is so small that some
  // servers get no part of it.
  on,
  // As `on`, with a second member (a rank or a host) of each class, and never all ranks instead. Throws failure
  // (plugin) if the messages of the two differ, or if some have no receive: the strategy declares a symmetry that it
  // does not have.
  checked
};

struct simulation_setup {
  std::string strategy;                             // its id
  std::map<std::string, nlohmann::json> parameters; // of the strategy; others get their defaults, which must exist
  std::uint32_t workers = 1, servers = 0;
  bool colocate = false;
  std::uint32_t hosts = 1; // the ranks lie on these hosts in contiguous blocks
  std::uint64_t steps = 5; // the run ends after step `steps` - 1; steps before a checkpoint count, see `resume`
  network_options network;
  std::vector<std::uint32_t> link_of; // by rank: its link in network.links; empty: that of its host
  optimizer_config optimizer;
  std::vector<std::int64_t> tensors = {40, 7, 100, 16}; // elements of each
  std::vector<std::vector<std::int64_t>> shapes;        // of each tensor, with as many elements; empty: all are vectors
  std::vector<char> compressible;                       // rg_tensor.compressible of each tensor; empty: all are
  // How strongly each element of the arena is pulled to a target value; 0: not at all, gradients only fluctuate. The
  // targets of neighbouring workers differ by `pull_apart`; training with all gradients converges to their mean.
  double pull = 0, pull_apart = 0;
  // The gradients are those of constant_gradient(), independent of the step and of the weights; `pull` is ignored.
  bool constant = false;
  // The gradients of an element cancel out: of n workers, number `element` mod n has n - 1, each other one -1. They
  // depend neither on the step nor on the weights; `pull` and `constant` are ignored.
  bool cancelling = false;
  // Indices of tensors whose gradient is special, but for `cancelling`; the default: none is.
  std::size_t late_tensor = SIZE_MAX; // 0 in steps 0 and 1 (late_steps), as behind weights that begin with 0
  std::size_t flat_tensor = SIZE_MAX; // a matrix of rank 1, though those of the workers are of full rank; not with pull
  std::int64_t table_rows = 0;        // of a sparse table; 0: there is none
  std::int64_t table_row = 5;         // elements per row
  std::uint64_t touched = 9;          // maximum number of rows that a worker touches in a step
  // With ghosts, in place of the table above: any number of tables, and the rows that are touched.
  std::vector<ghost_table> tables;
  rows_function touches;
  bool rows_in_place = false; // the model reads rows where they lie (RG_MODEL_ROWS_IN_PLACE); with `tables`
  bool ghosts = false;
  bool on_host = false;                       // ghosts stand for host memory; else for memory of a device
  bool no_pointers = false;                   // rg_strategy_host.pointer fails, as it does on a device
  std::uint64_t straggler_ns = 0;             // additional computing time of rank 1 in every step
  plugin_host::log_function log;              // receives the messages of strategies
  std::uint64_t late_ns = 0;                  // delay of the first step of rank 0
  plugin_host::extension_function extensions; // of the strategies' hosts; may be empty
  compute_function compute;                   // null: times for tests, 5 us forward and 3 us between gradients
  std::vector<std::uint32_t> compute_kinds;   // by worker: workers of equal kind have equal times; empty: all have
  virtual_work work;                          // of the strategies' operations
  cores_options cores;                        // which ranks share cores for computing, messages and operations
  folding fold = folding::off;
  // If not null, records the operations of all ranks, which then are not folded.
  goal_recorder* recorder = nullptr;
  const steps_to_trace* trace = nullptr; // steps whose events are recorded; ranks then are not folded
  // If not null, the run stops after step `steps` - 1, without finish(), and writes a checkpoint there: what strategies
  // save, and the weights, but neither optimizer state nor sparse tables, of which there must be none.
  simulated_checkpoint* stop_at = nullptr;
  // Number of steps after which `leavers` leave the run: all ranks stop between two steps, the other ranks are told
  // (rg_strategy.left), and only these go on. 0: none leaves.
  std::uint64_t stays = 0;
  std::vector<std::uint32_t> leavers; // ranks that are workers only; empty: the last worker
  // If not null, the run goes on with step resume->step, and so runs `steps` - resume->step steps. Requires the same
  // cluster and tensors. Servers begin with worker 0's weights.
  const simulated_checkpoint* resume = nullptr;
};

struct simulation_result {
  std::vector<std::vector<float>> weights; // final weights of the whole arena, by worker; empty with ghosts
  // A checksum of the weights that each step of each worker computed with, by worker and step; empty with ghosts.
  std::vector<std::vector<std::uint64_t>> checksums;
  // Rows of the table that were updated or written, by rank and row number: in the worker role and in the server role.
  std::vector<std::map<std::uint64_t, std::vector<float>>> worker_rows, server_rows;
  std::vector<std::uint64_t> server_held;         // rows that take memory in the server role, by rank
  std::vector<virtual_network::counts> counted;   // by rank
  std::vector<strategy_records> records;          // by rank
  std::vector<std::uint64_t> state_bytes;         // optimizer state of the arena in both roles, by rank
  std::uint64_t virtual_ns = 0;                   // time when the last rank finished
  std::vector<std::vector<simulated_step>> steps; // by worker and step, from the first that was simulated
  // The number of ranks that were simulated; without folding all. Entries by rank or worker of the others are those of
  // the one that stands for them, without counts::sent_to.
  std::uint32_t simulated = 0;
  bool rounded = false;      // with folding: messages were taken to be equal that differ by up to 128 bytes
  std::string whole;         // why folding was asked for and not done; empty: it was done, or not asked for
  std::uint64_t ahead = 0;   // with late_ns: the most steps that a worker had ended when the first step of rank 0 began
  std::size_t left_over = 0; // operations of the network that never ended
};

// Runs to the end. Throws std::runtime_error on a deadlock, with what each rank waits for; if no worker ends a step
// during 100 million turns of the time loop and 100,000 more for each rank; if members of the setup do not fit its
// ranks or tensors; if weights are NaN or change while a step still reads them; on a virtual_network::misuse(); or if
// ghosts are requested and the strategy works on bytes. Throws failure as strategy_host does, also (plugin) if the
// strategy wrote outside of its buffers or into the padding behind a tensor. Requires a registry that has the
// components' functions: registry::loading(), or registry::of_files() with trust::tried.
simulation_result simulate(const registry& plugins, const simulation_setup& setup);

} // namespace regatta

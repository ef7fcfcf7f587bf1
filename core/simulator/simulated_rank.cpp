// SPDX-License-Identifier: Apache-2.0
#include "simulated_rank.hpp"

#include "formula_model.hpp"
#include "goal_recorder.hpp"

#include "base/failure.hpp"
#include "cluster/plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

constexpr std::uint64_t forward_ns = 5000, backward_ns_per_tensor = 3000; // of tests

std::uint64_t checksum(const std::vector<float>& weights) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const float w : weights) sum = (sum ^ std::bit_cast<std::uint32_t>(w)) * 0x100000001b3;
  return sum;
}

// Returns a tensor that points to `name` and `shape`.
rg_tensor tensor(std::uint32_t kind, const char* name, std::span<const std::int64_t> shape) {
  auto t = rg::make_versioned<rg_tensor>();
  t.type = RG_F32;
  t.kind = kind;
  t.name = name;
  t.ndim = static_cast<std::uint32_t>(shape.size());
  t.shape = shape.data();
  t.decay = t.lr_scale = 1;
  return t;
}

// A rank's part of a checkpoint as the functions of rg_state.
struct state_access {
  std::function<void*(const rg_buffer&)> address;
  simulated_checkpoint::rank* to;         // null: load
  const simulated_checkpoint::rank* from; // null: save
  std::size_t next = 0;

  rg_status move(const char* name, void* data, std::uint64_t size) {
    auto* const bytes = static_cast<std::byte*>(data);
    if (to) {
      to->state.emplace_back(name, std::vector(bytes, bytes + size));
      return RG_OK;
    }
    if (next == from->state.size()) return RG_E_CONFIG;
    const auto& [saved_name, saved] = from->state[next++];
    if (saved_name != name || saved.size() != size) return RG_E_CONFIG;
    std::ranges::copy(saved, bytes);
    return RG_OK;
  }
  rg_state table() {
    auto t = rg::make_versioned<rg_state>();
    t.context = this;
    t.bytes = [](void* self, const char* name, void* data, std::uint64_t size) {
      return static_cast<state_access*>(self)->move(name, data, size);
    };
    t.buffer = [](void* self, const char* name, const rg_buffer* b) {
      auto& x = *static_cast<state_access*>(self);
      return x.move(name, x.address(*b), rg::bytes_of(*b));
    };
    return t;
  }
};

} // namespace

simulated_rank::simulated_rank(const simulation_setup& setup, const component& strategy, const rg_value* values,
                               const cluster_layout& layout, const rg_plan& plan, virtual_network& network,
                               std::uint32_t rank, shared_cores* cores)
    : setup_(setup), cluster_(layout.view(rank)), trace_(setup.trace, rank),
      padding_(setup.ghosts ? std::vector<char>() : padding_of(setup)), network_(network), cores_(cores), rank_(rank) {
  strategy_host_setup x{};
  x.strategy = &strategy.strategy;
  x.values = values;
  x.strategy_id = strategy.id;
  x.transport = {"virtual", &network.functions(), network.endpoint(rank), network.caps(), &host_};
  x.cluster = cluster_;
  x.lanes = plan.lanes;
  for (std::size_t k = 0; k < setup.tensors.size(); ++k) {
    auto t = tensor(RG_TENSOR_DENSE, "t",
                    setup.shapes.empty() ? std::span(&setup.tensors[k], 1) : std::span(setup.shapes.at(k)));
    t.compressible = setup.compressible.empty() || setup.compressible.at(k);
    t.reordered = t.ndim > 1 && !(plan.flags & RG_PLAN_ROW_MAJOR); // as executors may keep matrices and convolutions
    x.tensors.push_back(t);
  }
  std::vector<ghost_table> tables = setup.tables;
  if (setup.table_rows) tables.assign(1, {setup.table_rows, setup.table_row, setup.touched});
  for (const ghost_table& t : tables) table_shapes_.push_back({t.rows, t.row});
  touched_.resize(tables.size());
  for (std::size_t k = 0; k < tables.size(); ++k) {
    auto t = tensor(RG_TENSOR_ROWS, "table", table_shapes_[k]);
    t.max_rows = tables[k].most;
    x.tensors.push_back(t);
  }
  x.rows_in_place = setup.rows_in_place;
  x.optimizer = setup.optimizer;
  x.momentum = hand_over_momentum(plan, strategy.id, x.optimizer);
  x.log = setup.log;
  x.extensions = setup.extensions;
  x.ghosts = setup.ghosts;
  x.ghosts_on_host = setup.ghosts && setup.on_host;
  x.no_pointers = setup.no_pointers;
  x.work = setup.work;
  x.trace = trace_.recorder();
  if (setup.recorder || cores_)
    x.work.begin = [this](std::uint64_t earliest, std::uint64_t ns, bool works) {
      const std::uint64_t now = network_.now();
      const std::uint64_t end =
          works && cores_ ? cores_->work(rank_, shared_cores::operation, now, earliest, ns) : earliest + ns;
      if (setup_.recorder) setup_.recorder->work(rank_, now, ns, end);
      return end;
    };
  x.initial_weights = [this](std::uint64_t first, std::uint64_t count, float* out) {
    for (std::uint64_t i = 0; i < count; ++i) out[i] = first_weight(0, first + i);
  };
  x.initial_rows = [&setup](std::uint32_t, std::span<const std::uint64_t> rows, float* out) {
    const auto row = static_cast<std::uint64_t>(setup.table_row);
    for (std::uint64_t i = 0; i < rows.size() * row; ++i) out[i] = initial_weight(rows[i / row] * row + i % row);
  };
  strategy_ = std::make_unique<strategy_host>(std::move(x));
  const auto w = strategy_->weights();
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = first_weight(rank, i);
  strategy_->start();
  if (setup.resume) load();
  const std::size_t tensors = setup.tensors.size();
  computing_.forward.assign(tensors, tensors ? forward_ns / tensors : 0);
  computing_.backward.assign(tensors, backward_ns_per_tensor);
  if (tensors) computing_.backward[0] = 0;
  if (rank == 0) next_at_ = setup.late_ns;
  if (cluster_.server >= 0) strategy_->begin(strategy_host::serve, 0);
  if (cluster_.worker >= 0)
    begin_step();
  else
    phase_ = phase::finishing;
}

bool simulated_rank::advance() {
  bool moved = strategy_->poll(0, 0);
  for (;;) {
    switch (phase_) {
    case phase::beginning:
      if (computes() || !strategy_->done(strategy_host::begin_step)) return moved;
      seen_.resize(strategy_->weights().size());
      tensor_ = setup_.tensors.size();
      compute_for((rank_ == 1 ? setup_.straggler_ns : 0) + computing_.before);
      forward_ = false;
      phase_ = phase::reading;
      break;
    case phase::reading: // the forward pass, from the arena's end to its begin
      if (computes()) return moved;
      if (!std::exchange(forward_, true)) {
        times_.back().forward = network_.now();
        trace_.input(computes_since_, network_.now());
        note_lost(0);
      }
      if (tensor_ && strategy_->weights_from() > strategy_->arena().slices[tensor_ - 1].first) {
        trace_.waits(tensor_ - 1, network_.now());
        return moved;
      }
      if (tensor_ < setup_.tensors.size()) trace_.layer(tensor_, true, computes_since_, computed_at());
      if (tensor_ == 0) {
        times_.back().backward = network_.now();
        note_lost(1);
        compute_for(computing_.backward.empty() ? computing_.after : computing_.backward[0]);
        phase_ = phase::computing;
        if (!setup_.ghosts) checksums_.push_back(checksum(seen_));
        break;
      }
      read_tensor(--tensor_);
      compute_for(computing_.forward[tensor_]);
      break;
    case phase::computing:
      if (computes()) return moved;
      compute_tensor();
      break;
    case phase::ending:
      if (!strategy_->done(strategy_host::end_step)) return moved;
      if (!times_.back().end) {
        times_.back().end = network_.now();
        trace_.end_step(step_, times_.back());
      }
      if (step_ + 1 == setup_.steps && strategy_->weights_from()) return moved;
      // As in an evaluation: workers pull rows between steps, not all of them equally often.
      if (setup_.table_rows && pulls_++ < (step_ == 1 ? cluster_.worker + 1 : 0)) {
        set_rows(step_ + 1000);
        strategy_->begin(strategy_host::pull_rows, 0);
        phase_ = phase::pulling;
        break;
      }
      pulls_ = 0;
      if (++step_ < steps_)
        begin_step();
      else if (setup_.stop_at || step_ < setup_.steps)
        phase_ = phase::over;
      else {
        strategy_->begin(strategy_host::finish, step_);
        phase_ = phase::finishing;
      }
      break;
    case phase::pulling:
      if (!strategy_->done(strategy_host::pull_rows)) return moved;
      phase_ = phase::ending;
      break;
    case phase::finishing:
      if (!strategy_->done(strategy_host::finish) || !strategy_->done(strategy_host::serve) || strategy_->busy())
        return moved;
      phase_ = phase::over;
      break;
    case phase::over: return moved;
    }
    moved = true;
  }
}

void simulated_rank::go_on_without(const std::vector<std::uint32_t>& gone) {
  for (const std::uint32_t rank : gone) strategy_->left(rank);
  steps_ = setup_.steps;
  if (is_worker()) begin_step();
}

simulated_checkpoint::rank simulated_rank::save() {
  simulated_checkpoint::rank to{weights(), {}};
  state_access access{[this](const rg_buffer& b) { return strategy_->address(b); }, &to, nullptr};
  strategy_->save(setup_.steps, access.table());
  return to;
}

void simulated_rank::require_no_damage() const {
  auto where = strategy_->find_damage();
  const auto w = strategy_->weights(), g = strategy_->gradients();
  for (std::uint64_t i = 0; i < w.size() && !where; ++i)
    if (padding_[i] && (g[i] != 0 || w[i] != 0))
      where = fmt::format("the padding behind the {} of a tensor, element {} of the arena",
                          g[i] != 0 ? "gradient" : "weights", i);
  if (where)
    throw failure(exit_code::plugin, fmt::format("{}: rank {}: {} was written: its own code writes out of bounds",
                                                 setup_.strategy, rank_, *where));
}

std::uint64_t simulated_rank::next_event() const {
  // An event that is already due waits for another one, which is reported separately.
  return std::min(strategy_->next_timer(), computes() ? computed_at() : never);
}

std::string simulated_rank::where() const {
  const auto step = [this](const char* what) { return fmt::format("{} of step {}", what, step_); };
  switch (phase_) {
  case phase::beginning: return step("begin_step");
  case phase::reading: return step("weights for the forward pass");
  case phase::computing: return step("the backward pass");
  case phase::ending: return step("end_step");
  case phase::pulling: return step("pull_rows after the end");
  default: return is_worker() ? "finish" : "serve";
  }
}

float simulated_rank::first_weight(std::uint32_t rank, std::uint64_t element) const {
  if (setup_.resume) return setup_.resume->ranks.at(rank).weights.at(element);
  return padding_[element] ? 0 : initial_weight(element);
}

void simulated_rank::load() {
  step_ = setup_.resume->step;
  const simulated_checkpoint::rank& from = setup_.resume->ranks.at(rank_);
  state_access access{[this](const rg_buffer& b) { return strategy_->address(b); }, nullptr, &from};
  strategy_->load(step_, access.table());
  if (access.next != from.state.size())
    throw failure(exit_code::plugin, fmt::format("{}: rank {}: load() reads {} things from the checkpoint, save() "
                                                 "wrote {}: name the same things in the same order",
                                                 setup_.strategy, rank_, access.next, from.state.size()));
}

void simulated_rank::set_rows(std::uint64_t step) {
  const auto worker = static_cast<std::uint32_t>(cluster_.worker);
  std::vector<rg_rows> all(touched_.size(), rg::make_versioned<rg_rows>());
  for (std::uint32_t t = 0; t < all.size(); ++t) {
    if (setup_.table_rows)
      touched_[t] = rows_touched(setup_, worker, step);
    else
      setup_.touches(worker, step, t, touched_[t]);
    all[t].tensor = strategy_->tables().windows()[t].tensor;
    all[t].rows = touched_[t].data();
    all[t].count = touched_[t].size();
  }
  strategy_->tables().set_rows(all);
}

void simulated_rank::compute_table() {
  rg_batch batch{};
  strategy_->tables().attach(batch, true);
  const rg_table_rows& t = batch.tables[0];
  const auto row = static_cast<std::uint64_t>(setup_.table_row);
  auto* const gradients = static_cast<float*>(t.gradients);
  const auto* const weights = static_cast<const float*>(t.weights);
  for (std::uint64_t i = 0; i < t.count * row; ++i)
    gradients[i] = gradient_of(static_cast<std::uint32_t>(cluster_.worker), cluster_.workers, step_,
                               t.rows[i / row] * row + i % row, weights[i]);
}

void simulated_rank::compute_times_of_step() {
  setup_.compute(static_cast<std::uint32_t>(cluster_.worker), step_, computing_);
  const std::size_t tensors = setup_.tensors.size(), forward = computing_.forward.size(),
                    backward = computing_.backward.size();
  if (forward != tensors || backward != tensors)
    throw std::runtime_error(fmt::format("compute: expected {} forward and {} backward times, one for each tensor, got "
                                         "{} and {}",
                                         tensors, tensors, forward, backward));
}

void simulated_rank::begin_step() {
  set_rows(step_);
  if (setup_.compute) compute_times_of_step();
  times_.push_back({.begin = network_.now()});
  trace_.begin_step(step_);
  strategy_->begin(strategy_host::begin_step, step_);
  phase_ = phase::beginning;
}

void simulated_rank::compute_for(std::uint64_t ns) {
  computes_since_ = network_.now();
  next_at_ = network_.now() + ns;
  if (cores_) cores_->compute(rank_, network_.now(), ns);
  if (setup_.recorder) setup_.recorder->compute(rank_, network_.now(), ns);
}

void simulated_rank::note_lost(std::size_t part) {
  if (!cores_) return;
  times_.back().lost.at(part) = cores_->lost(rank_) - noted_;
  noted_ = cores_->lost(rank_);
}

void simulated_rank::read_tensor(std::size_t t) {
  trace_.reads(t, network_.now());
  if (setup_.ghosts) return;
  const rg_slice& s = strategy_->arena().slices[t];
  const auto w = strategy_->weights().subspan(s.first, s.count);
  std::copy(w.begin(), w.end(), seen_.begin() + static_cast<std::ptrdiff_t>(s.first));
}

void simulated_rank::fill_gradients(std::span<float> g, const rg_slice& s) {
  const auto w = strategy_->weights();
  const auto at = [&](std::uint64_t i) {
    return padding_[i] ? 0 : gradient_at(setup_, static_cast<std::uint32_t>(cluster_.worker), step_, i, w[i]);
  };
  if (!setup_.constant || step_ < late_steps) {
    for (std::uint64_t i = s.first; i < s.first + s.count; ++i) g[i] = at(i);
    return;
  }
  for (std::uint64_t i = constant_.size(); i < w.size(); ++i) constant_.push_back(at(i));
  std::copy_n(constant_.begin() + static_cast<std::ptrdiff_t>(s.first), s.count,
              g.begin() + static_cast<std::ptrdiff_t>(s.first));
}

void simulated_rank::require_unchanged(std::uint64_t first) const {
  const auto w = strategy_->weights();
  for (std::uint64_t i = first; i < w.size(); ++i)
    if (std::isnan(w[i]) && std::isnan(seen_[i]))
      throw std::runtime_error(fmt::format("rank {} step {}: weight {} is not a number", rank_, step_, i));
    else if (w[i] != seen_[i])
      throw std::runtime_error(
          fmt::format("rank {} step {}: weight {} changed while the step still reads it", rank_, step_, i));
}

void simulated_rank::compute_tensor() {
  if (tensor_ == setup_.tensors.size()) return end_step();
  const rg_slice& s = strategy_->arena().slices[tensor_];
  if (!setup_.ghosts) {
    require_unchanged(s.first);
    fill_gradients(strategy_->gradients(), s);
  }
  trace_.layer(tensor_, false, computes_since_, network_.now());
  trace_.ready(tensor_, network_.now());
  strategy_->gradients_ready(s.first + s.count);
  if (++tensor_ < setup_.tensors.size()) {
    compute_for(computing_.backward[tensor_]);
  } else if (computing_.after) {
    compute_for(computing_.after);
  } else {
    end_step();
  }
}

void simulated_rank::end_step() {
  if (setup_.table_rows && !setup_.ghosts) compute_table();
  times_.back().computed = network_.now();
  note_lost(2);
  strategy_->begin(strategy_host::end_step, step_);
  phase_ = phase::ending;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "simulation.hpp"

#include "base/failure.hpp"
#include "cluster/layout.hpp"
#include "cluster/plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <span>
#include <stdexcept>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

constexpr std::uint64_t forward_ns = 5000, backward_ns_per_tensor = 3000;
constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

// Returns worker `w` of `n`'s contribution to the gradient of an element whose weight is `weight`.
template <class T> T gradient(std::uint32_t w, std::uint32_t n, std::uint64_t step, std::uint64_t element, T weight) {
  const auto noise = static_cast<T>(static_cast<int>((element * 7 + w * 31 + step * 17) % 101) - 50) / T(50);
  return (weight * T(0.1) + noise) / static_cast<T>(n);
}

std::uint64_t padded(std::int64_t elements) {
  return (static_cast<std::uint64_t>(elements) + 15) / 16 * 16;
}

// An element's place in a tensor: in a matrix with its first dimension as rows.
struct place {
  std::uint64_t index, row, column;
};
// Returns the element's place in tensor `t`; nothing if it is in another one or in padding.
std::optional<place> place_in(const simulation_setup& s, std::size_t t, std::uint64_t element) {
  if (t >= s.tensors.size()) return {};
  for (std::size_t k = 0; k < t; ++k) {
    if (element < padded(s.tensors[k])) return {};
    element -= padded(s.tensors[k]);
  }
  const auto count = static_cast<std::uint64_t>(s.tensors[t]);
  if (element >= count) return {};
  const std::uint64_t columns = s.shapes.empty() ? count : count / static_cast<std::uint64_t>(s.shapes.at(t).at(0));
  return place{element, element / columns, element % columns};
}

// The workers' parts of the flat tensor differ by matrices of full rank, whose sum over the workers is 0.
template <class T> T flat_gradient(const simulation_setup& s, std::uint32_t w, std::uint64_t step, const place& p) {
  const auto noise = [&](std::uint32_t worker) {
    return static_cast<T>(static_cast<int>((p.index * 7 + worker * 31 + step * 17) % 101) - 50) / T(200);
  };
  const T column = static_cast<T>(4 + p.row % 4) / T(16), row = static_cast<T>(4 + p.column % 3) / T(4);
  return ((p.row + p.column) % 2 ? column * row : -column * row) / static_cast<T>(s.workers) +
         (noise(w) - noise((w + 1) % s.workers)) / static_cast<T>(s.workers);
}

// The gradient of the setup's model. The pull's target values have a mean over the workers between -2 and 2.
template <class T>
T gradient(const simulation_setup& s, std::uint32_t w, std::uint64_t step, std::uint64_t element, T weight) {
  if (s.cancelling) return element % s.workers == w ? static_cast<T>(s.workers) - 1 : T(-1);
  if (s.constant) return static_cast<T>(constant_gradient(s, w, step, element));
  if (step < late_steps && place_in(s, s.late_tensor, element)) return 0;
  if (s.pull == 0)
    if (const auto p = place_in(s, s.flat_tensor, element)) return flat_gradient<T>(s, w, step, *p);
  const T g = gradient(w, s.workers, step, element, weight);
  if (s.pull == 0) return g;
  const T mean = static_cast<T>(static_cast<int>(element * 11 % 17) - 8) / T(4);
  const T own = static_cast<T>(s.pull_apart) * (static_cast<T>(w) - static_cast<T>(s.workers - 1) / T(2));
  return g + static_cast<T>(s.pull) * (weight - mean - own) / static_cast<T>(s.workers);
}

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

// One rank: a strategy with its host and, for a worker, a model that takes virtual time.
class simulated_rank {
public:
  simulated_rank(const simulation_setup& setup, const component& strategy, const rg_value* values,
                 const cluster_layout& layout, const rg_plan& plan, virtual_network& network, std::uint32_t rank)
      : setup_(setup), network_(network), cluster_(layout.view(rank)), rank_(rank),
        padding_(setup.ghosts ? std::vector<char>() : padding_of(setup)) {
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
      t.compressible = setup.compressible;
      t.reordered = t.ndim > 1 && !(plan.flags & RG_PLAN_ROW_MAJOR); // as executors may keep matrices and convolutions
      x.tensors.push_back(t);
    }
    if (setup.table_rows) {
      table_shape_ = {setup.table_rows, setup.table_row};
      auto t = tensor(RG_TENSOR_ROWS, "table", table_shape_);
      t.max_rows = setup.touched;
      x.tensors.push_back(t);
    }
    x.optimizer = setup.optimizer;
    x.momentum = hand_over_momentum(plan, strategy.id, x.optimizer);
    x.log = setup.log;
    x.extensions = setup.extensions;
    x.ghosts = setup.ghosts;
    x.no_pointers = setup.no_pointers;
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
    if (rank == 0) next_at_ = setup.late_ns;
    if (cluster_.server >= 0) strategy_->begin(strategy_host::serve, 0);
    if (cluster_.worker >= 0)
      begin_step();
    else
      phase_ = phase::finishing;
  }

  // Returns whether anything happened.
  bool advance() {
    bool moved = strategy_->poll(0, 0);
    for (;;) {
      switch (phase_) {
      case phase::beginning:
        if (network_.now() < next_at_ || !strategy_->done(strategy_host::begin_step)) return moved;
        seen_.resize(strategy_->weights().size());
        tensor_ = setup_.tensors.size();
        next_at_ = network_.now() + (rank_ == 1 ? setup_.straggler_ns : 0);
        phase_ = phase::reading;
        break;
      case phase::reading: // the forward pass, from the arena's end to its begin
        if (network_.now() < next_at_) return moved;
        if (tensor_ == 0) {
          next_at_ = network_.now();
          phase_ = phase::computing;
          if (!setup_.ghosts) checksums_.push_back(checksum(seen_));
          break;
        }
        if (strategy_->weights_from() > strategy_->arena().slices[tensor_ - 1].first) return moved;
        read_tensor(--tensor_);
        next_at_ = network_.now() + forward_ns / setup_.tensors.size();
        break;
      case phase::computing:
        if (network_.now() < next_at_) return moved;
        compute_tensor();
        break;
      case phase::ending:
        if (!strategy_->done(strategy_host::end_step)) return moved;
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

  // Tells this rank that another one is gone, and lets it go on.
  void go_on_without(std::uint32_t dead) {
    strategy_->left(dead);
    steps_ = setup_.steps;
    if (is_worker()) begin_step();
  }
  bool over() const { return phase_ == phase::over; }
  bool may_stop() const { return over() || !is_worker(); } // a server waits for the next step
  // Returns this rank's part of a checkpoint. Call it when no rank can go on.
  simulated_checkpoint::rank save() {
    simulated_checkpoint::rank to{weights(), {}};
    state_access access{[this](const rg_buffer& b) { return strategy_->address(b); }, &to, nullptr};
    strategy_->save(setup_.steps, access.table());
    return to;
  }
  // Throws failure if the strategy's own code wrote outside of its buffers or into a tensor's padding.
  void require_no_damage() const {
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
  std::uint64_t next_event() const {
    // An event that is already due waits for another one, which is reported separately.
    return std::min(strategy_->next_timer(), next_at_ > network_.now() ? next_at_ : never);
  }
  std::vector<float> weights() const { return {strategy_->weights().begin(), strategy_->weights().end()}; }
  const std::vector<std::uint64_t>& checksums() const { return checksums_; }
  std::uint64_t steps_ended() const { return step_; } // of a worker
  bool is_worker() const { return cluster_.worker >= 0; }
  // Returns where a rank is that has not ended: "end_step of step 3".
  std::string where() const {
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
  const strategy_records& records() const { return strategy_->records(); }
  std::uint64_t state_bytes() const { return strategy_->optimizer_state_bytes(); }
  const row_table* table(bool as_server) const {
    return setup_.table_rows ? strategy_->tables().shard(as_server, 0) : nullptr;
  }

private:
  float first_weight(std::uint32_t rank, std::uint64_t element) const {
    if (setup_.resume) return setup_.resume->ranks.at(rank).weights.at(element);
    return padding_[element] ? 0 : initial_weight(element);
  }
  void load() {
    step_ = setup_.resume->step;
    const simulated_checkpoint::rank& from = setup_.resume->ranks.at(rank_);
    state_access access{[this](const rg_buffer& b) { return strategy_->address(b); }, nullptr, &from};
    strategy_->load(step_, access.table());
    if (access.next != from.state.size())
      throw failure(exit_code::plugin, fmt::format("{}: rank {}: load() reads {} things from the checkpoint, save() "
                                                   "wrote {}: name the same things in the same order",
                                                   setup_.strategy, rank_, access.next, from.state.size()));
  }

  enum class phase { beginning, reading, computing, ending, pulling, finishing, over };

  void set_rows(std::uint64_t step) {
    if (!setup_.table_rows) return;
    touched_ = rows_touched(setup_, static_cast<std::uint32_t>(cluster_.worker), step);
    auto rows = rg::make_versioned<rg_rows>();
    rows.tensor = strategy_->tables().windows()[0].tensor;
    rows.rows = touched_.data();
    rows.count = touched_.size();
    strategy_->tables().set_rows({&rows, 1});
  }

  void compute_table() {
    rg_batch batch{};
    strategy_->tables().attach(batch, true);
    const rg_table_rows& t = batch.tables[0];
    const auto row = static_cast<std::uint64_t>(setup_.table_row);
    auto* const gradients = static_cast<float*>(t.gradients);
    const auto* const weights = static_cast<const float*>(t.weights);
    for (std::uint64_t i = 0; i < t.count * row; ++i)
      gradients[i] = gradient<float>(static_cast<std::uint32_t>(cluster_.worker), cluster_.workers, step_,
                                     t.rows[i / row] * row + i % row, weights[i]);
  }

  void begin_step() {
    set_rows(step_);
    strategy_->begin(strategy_host::begin_step, step_);
    phase_ = phase::beginning;
  }

  void read_tensor(std::size_t t) {
    if (setup_.ghosts) return;
    const rg_slice& s = strategy_->arena().slices[t];
    const auto w = strategy_->weights().subspan(s.first, s.count);
    std::copy(w.begin(), w.end(), seen_.begin() + static_cast<std::ptrdiff_t>(s.first));
  }

  // Constant gradients are computed once: runs of thousands of steps use them.
  void fill_gradients(std::span<float> g, const rg_slice& s) {
    const auto w = strategy_->weights();
    const auto at = [&](std::uint64_t i) {
      return padding_[i] ? 0 : gradient<float>(setup_, static_cast<std::uint32_t>(cluster_.worker), step_, i, w[i]);
    };
    if (!setup_.constant || step_ < late_steps) {
      for (std::uint64_t i = s.first; i < s.first + s.count; ++i) g[i] = at(i);
      return;
    }
    for (std::uint64_t i = constant_.size(); i < w.size(); ++i) constant_.push_back(at(i));
    std::copy_n(constant_.begin() + static_cast<std::ptrdiff_t>(s.first), s.count,
                g.begin() + static_cast<std::ptrdiff_t>(s.first));
  }

  void compute_tensor() {
    if (setup_.tensors.empty()) return end_step();
    const rg_slice& s = strategy_->arena().slices[tensor_];
    if (!setup_.ghosts) {
      const auto w = strategy_->weights(), g = strategy_->gradients();
      for (std::uint64_t i = s.first; i < w.size(); ++i)
        if (std::isnan(w[i]) && std::isnan(seen_[i]))
          throw std::runtime_error(fmt::format("rank {} step {}: weight {} is not a number", rank_, step_, i));
        else if (w[i] != seen_[i])
          throw std::runtime_error(
              fmt::format("rank {} step {}: weight {} changed while the step still reads it", rank_, step_, i));
      fill_gradients(g, s);
    }
    strategy_->gradients_ready(s.first + s.count);
    if (++tensor_ < setup_.tensors.size()) {
      next_at_ = network_.now() + backward_ns_per_tensor;
    } else {
      end_step();
    }
  }

  void end_step() {
    if (setup_.table_rows) compute_table();
    strategy_->begin(strategy_host::end_step, step_);
    phase_ = phase::ending;
  }

  const simulation_setup& setup_;
  virtual_network& network_;
  rg_cluster cluster_;
  std::uint32_t rank_;
  std::vector<char> padding_; // by element of the arena; empty with ghosts
  plugin_host host_;
  std::unique_ptr<strategy_host> strategy_;
  phase phase_ = phase::beginning;
  std::uint64_t step_ = 0, next_at_ = 0;
  std::uint64_t steps_ = setup_.stays ? setup_.stays : setup_.steps; // when this rank stops
  std::size_t tensor_ = 0;
  int pulls_ = 0;
  std::vector<std::uint64_t> touched_;
  std::array<std::int64_t, 2> table_shape_{};
  std::vector<float> constant_; // with setup_.constant: the gradients from step late_steps on
  std::vector<float> seen_;     // weights at the begin of the step
  std::vector<std::uint64_t> checksums_;
};

// Says where each rank is, and for which peers, lanes and bytes it waits; of many ranks and operations the first ones.
std::string describe_deadlock(const simulation_setup& setup, const virtual_network& network,
                              const std::vector<std::unique_ptr<simulated_rank>>& ranks) {
  constexpr std::size_t most_ranks = 8, most_operations = 3;
  std::string text = fmt::format("{}: nothing can go on at {} ns: a deadlock", setup.strategy, network.now());
  const auto waits = network.waits();
  std::size_t named = 0;
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    const auto [first, end] = waits.equal_range(r);
    if (ranks[r]->over() && first == end) continue;
    if (++named > most_ranks) return text + "; ...";
    text += fmt::format("; rank {} ({}) waits ", r, ranks[r]->over() ? "at its end" : ranks[r]->where());
    if (first == end) text += "for no message";
    std::size_t listed = 0;
    for (auto w = first; w != end && listed <= most_operations; ++w, ++listed)
      text += listed == most_operations ? ", ..." : (listed ? ", " : "") + w->second;
  }
  return text;
}

} // namespace

std::uint64_t arena_elements(const simulation_setup& setup) {
  std::uint64_t n = 0;
  for (const std::int64_t t : setup.tensors) n += padded(t);
  return n;
}

std::vector<char> padding_of(const simulation_setup& setup) {
  std::vector<char> padding;
  for (const std::int64_t t : setup.tensors) {
    padding.insert(padding.end(), static_cast<std::size_t>(t), 0);
    padding.resize(padding.size() + padded(t) - static_cast<std::uint64_t>(t), 1);
  }
  return padding;
}

simulation_result simulate(const registry& plugins, const simulation_setup& setup) {
  const component& strategy = plugins.find(kind::strategy, setup.strategy);
  const parameter_values values(strategy, setup.parameters);
  const auto layout = cluster_layout::make(setup.workers, setup.servers, setup.colocate, setup.hosts);
  plugin_host host;
  const rg_plan plan = plan_of(strategy.strategy, values.data(), layout, setup.optimizer, host, setup.strategy);
  if (setup.ghosts && (plan.flags & RG_PLAN_BYTES))
    throw std::runtime_error(
        fmt::format("{} works on bytes (RG_PLAN_BYTES), which ghosts do not have", setup.strategy));
  virtual_network network(layout.size(), setup.network);
  std::vector<std::unique_ptr<simulated_rank>> ranks;
  for (std::uint32_t r = 0; r < layout.size(); ++r)
    ranks.push_back(std::make_unique<simulated_rank>(setup, strategy, values.data(), layout, plan, network, r));

  // Only ranks for which something happened are advanced: there may be thousands.
  using alarm = std::pair<std::uint64_t, std::uint32_t>; // time, rank
  std::priority_queue<alarm, std::vector<alarm>, std::greater<>> alarms;
  std::vector<std::uint64_t> set_for(ranks.size(), 0);
  std::vector<std::uint32_t> awake(ranks.size());
  std::iota(awake.begin(), awake.end(), 0u);
  std::vector<char> over(ranks.size(), 0);
  std::size_t left = ranks.size();
  std::uint64_t ahead = 0;
  bool gone = false; // simulation_setup.stays
  for (std::uint64_t rounds = 0;; ++rounds) {
    if (rounds > 100'000'000)
      throw std::runtime_error(fmt::format("{}: no end in sight at {} ns", setup.strategy, network.now()));
    for (std::size_t i = 0; i < awake.size(); ++i) {
      const std::uint32_t r = awake[i];
      while (ranks[r]->advance()) {
      }
      if (!over[r] && ranks[r]->over()) {
        over[r] = 1;
        --left;
      }
      const std::uint64_t next = ranks[r]->next_event();
      if (next != never && next > network.now() && set_for[r] != next) {
        alarms.push({next, r});
        set_for[r] = next;
      }
      for (const std::uint32_t t : network.take_touched()) awake.push_back(t);
      if (!network.misuse().empty()) throw std::runtime_error(network.misuse());
    }
    awake.clear();
    if (!left && (gone || !setup.stays)) break;
    const std::uint64_t next = std::min(network.next_event(), alarms.empty() ? never : alarms.top().first);
    if (next == never && setup.stays && !gone &&
        std::ranges::all_of(ranks, [](const auto& r) { return r->may_stop(); })) {
      gone = true;
      for (std::uint32_t r = 0; r < ranks.size(); ++r) {
        if (r == setup.workers - 1) continue; // over
        left += over[r];
        over[r] = 0;
        awake.push_back(r);
        ranks[r]->go_on_without(setup.workers - 1);
      }
      continue;
    }
    if (next == never && setup.stop_at && std::ranges::all_of(ranks, [](const auto& r) { return r->may_stop(); }))
      break;
    if (next == never) throw std::runtime_error(describe_deadlock(setup, network, ranks));
    if (network.now() < setup.late_ns && next >= setup.late_ns)
      for (const auto& r : ranks) ahead = std::max(ahead, r->steps_ended());
    network.advance(next);
    if (!network.misuse().empty()) throw std::runtime_error(network.misuse());
    awake = network.take_touched();
    for (; !alarms.empty() && alarms.top().first <= network.now(); alarms.pop()) {
      awake.push_back(alarms.top().second);
      if (set_for[awake.back()] == alarms.top().first) set_for[awake.back()] = 0;
    }
  }
  simulation_result result;
  for (std::uint32_t r = 0; r < layout.size(); ++r) {
    ranks[r]->require_no_damage();
    if (ranks[r]->is_worker()) {
      result.weights.push_back(ranks[r]->weights());
      result.checksums.push_back(ranks[r]->checksums());
    }
    const auto changed = [&](bool as_server) {
      std::map<std::uint64_t, std::vector<float>> rows;
      if (const row_table* t = ranks[r]->table(as_server))
        t->for_each_changed([&](std::uint64_t row, std::span<const float> w) { rows[row].assign(w.begin(), w.end()); });
      return rows;
    };
    result.worker_rows.push_back(changed(false));
    result.server_rows.push_back(changed(true));
    result.server_held.push_back(ranks[r]->table(true) ? ranks[r]->table(true)->held() : 0);
    result.counted.push_back(network.counted(r));
    result.records.push_back(ranks[r]->records());
    result.state_bytes.push_back(ranks[r]->state_bytes());
  }
  if (setup.stop_at) {
    setup.stop_at->step = setup.steps;
    setup.stop_at->ranks.clear();
    for (const auto& r : ranks) setup.stop_at->ranks.push_back(r->save());
  }
  result.virtual_ns = network.now();
  result.ahead = ahead;
  result.left_over = network.outstanding();
  return result;
}

std::vector<std::uint64_t> rows_touched(const simulation_setup& setup, std::uint32_t w, std::uint64_t step) {
  std::vector<std::uint64_t> rows;
  // Some rows are shared by several workers, and now and then a worker touches none.
  for (std::uint64_t k = 0; k < setup.touched && (w + step) % 5 != 4; ++k)
    rows.push_back((k * k * 7 + w * 3 + step * 11) % static_cast<std::uint64_t>(setup.table_rows));
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

namespace {

// Returns the initial weights of the arena and then of the table.
std::vector<double> initial_weights(const simulation_setup& setup) {
  const std::uint64_t arena = arena_elements(setup);
  std::vector<double> w(arena + static_cast<std::uint64_t>(setup.table_rows * setup.table_row));
  const std::vector<char> padding = padding_of(setup);
  for (std::uint64_t i = 0; i < w.size(); ++i)
    w[i] = i >= arena ? initial_weight(i - arena) : padding[i] ? 0 : initial_weight(i);
  return w;
}

} // namespace

std::vector<double> train_serially(const simulation_setup& setup) {
  const std::uint64_t arena = arena_elements(setup), row = static_cast<std::uint64_t>(setup.table_row);
  std::vector<double> w = initial_weights(setup);
  const std::uint64_t n = w.size();
  std::vector<double> v(n, 0.0), g(n);
  const std::vector<char> padding = padding_of(setup);
  for (std::uint64_t step = 0; step < setup.steps; ++step) {
    std::fill(g.begin(), g.end(), 0.0);
    std::vector<char> moves(n, 0); // rows that no worker touches keep weights and momentum
    std::fill_n(moves.begin(), arena, 1);
    for (std::uint32_t k = 0; k < setup.workers; ++k) {
      for (std::uint64_t i = 0; i < arena; ++i)
        if (!padding[i]) g[i] += gradient<double>(setup, k, step, i, w[i]);
      if (!setup.table_rows) continue;
      for (const std::uint64_t r : rows_touched(setup, k, step))
        for (std::uint64_t e = r * row; e < (r + 1) * row; ++e) {
          g[arena + e] += gradient<double>(k, setup.workers, step, e, w[arena + e]);
          moves[arena + e] = 1;
        }
    }
    double squares = 0;
    for (const double x : g) squares += x * x;
    const double clip =
        setup.optimizer.clip_norm > 0 ? std::min(1.0, setup.optimizer.clip_norm / std::sqrt(squares)) : 1.0;
    for (std::uint64_t i = 0; i < n; ++i) {
      if (!moves[i]) continue;
      v[i] = setup.optimizer.momentum * v[i] + clip * g[i];
      w[i] -= setup.optimizer.lr * v[i];
    }
  }
  return w;
}

std::vector<double> train_locally(const simulation_setup& setup, std::uint64_t k) {
  const std::uint64_t arena = arena_elements(setup), row = static_cast<std::uint64_t>(setup.table_row);
  std::vector<std::vector<double>> w(setup.workers, initial_weights(setup));
  const std::uint64_t n = w[0].size();
  std::vector<std::vector<double>> v(setup.workers, std::vector<double>(n));
  const std::vector<char> padding = padding_of(setup);
  for (std::uint64_t step = 0; step < setup.steps; ++step) {
    for (std::uint32_t r = 0; r < setup.workers; ++r) {
      const auto move = [&](std::uint64_t i, std::uint64_t element) {
        v[r][i] = setup.optimizer.momentum * v[r][i] +
                  setup.workers * gradient<double>(r, setup.workers, step, element, w[r][i]);
        w[r][i] -= setup.optimizer.lr * v[r][i];
      };
      for (std::uint64_t i = 0; i < arena; ++i)
        if (!padding[i]) move(i, i);
      if (!setup.table_rows) continue;
      for (const std::uint64_t touched : rows_touched(setup, r, step))
        for (std::uint64_t e = touched * row; e < (touched + 1) * row; ++e) move(arena + e, e);
    }
    if ((step + 1) % k && step + 1 < setup.steps) continue;
    for (std::uint64_t i = 0; i < n; ++i) {
      double mean = 0;
      for (const auto& own : w) mean += own[i] / setup.workers;
      for (auto& own : w) own[i] = mean;
    }
  }
  return w[0];
}

float initial_weight(std::uint64_t element) {
  return 0.01f * static_cast<float>(static_cast<int>(element % 13) - 6);
}

double constant_gradient(const simulation_setup& s, std::uint32_t w, std::uint64_t step, std::uint64_t element) {
  const std::uint32_t n = s.workers;
  if (step < late_steps && place_in(s, s.late_tensor, element)) return 0;
  const double large = 1 + static_cast<double>(element / 16 % 4) / 4, sign = element / 2 % 2 ? -1 : 1;
  double mean = element % 16 ? sign * (0.0025 + 0.0005 * static_cast<double>(element % 3)) : large;
  if (const auto p = place_in(s, s.flat_tensor, element))
    mean = (p->row ? 0.25 : 1) * (p->column ? (p->column % 2 ? 0.01 : -0.014) : 1);
  return mean * (1 + (w - (n - 1) / 2.0) / (2.0 * n)) / n; // the second factor's mean over the workers is 1
}

float gradient_of(std::uint32_t w, std::uint32_t n, std::uint64_t step, std::uint64_t element, float weight) {
  return gradient<float>(w, n, step, element, weight);
}

} // namespace regatta

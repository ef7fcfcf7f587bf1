// SPDX-License-Identifier: Apache-2.0
#include "simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta::test {
namespace {

constexpr std::uint64_t forward_ns = 5000, backward_ns_per_tensor = 3000;

float initial(std::uint64_t element) {
  return 0.01f * static_cast<float>(static_cast<int>(element % 13) - 6);
}

// What worker `w` of `n` adds to the gradient of an element whose weight is `weight`.
template <class T> T gradient(std::uint32_t w, std::uint32_t n, std::uint64_t step, std::uint64_t element, T weight) {
  const auto noise = static_cast<T>(static_cast<int>((element * 7 + w * 31 + step * 17) % 101) - 50) / T(50);
  return (weight * T(0.1) + noise) / static_cast<T>(n);
}

std::uint64_t padded(std::int64_t elements) {
  return (static_cast<std::uint64_t>(elements) + 15) / 16 * 16;
}

std::map<std::string, nlohmann::json> with_defaults(const component& c,
                                                    const std::map<std::string, nlohmann::json>& given) {
  std::map<std::string, nlohmann::json> all = given;
  for (const rg_param& p : c.parameters)
    if (!all.count(p.name)) all[p.name] = nlohmann::json::parse(p.default_value); // TOML's scalars here are JSON's
  return all;
}

// One rank: an exchange and, for a worker, a model that takes virtual time.
class simulated_rank {
public:
  simulated_rank(const simulation_setup& setup, const component& strategy, const rg_value* values,
                 const cluster_layout& layout, std::uint32_t lanes, virtual_network& network, std::uint32_t rank)
      : setup_(setup), network_(network), cluster_(layout.view(rank)), rank_(rank) {
    exchange_setup x{};
    x.strategy = &strategy.strategy;
    x.values = values;
    x.strategy_id = strategy.id;
    x.transport = &network.functions();
    x.transport_self = network.endpoint(rank);
    x.caps = network.caps();
    x.transport_host = &host_;
    x.layout = layout;
    x.rank = rank;
    x.lanes = lanes;
    for (const std::int64_t elements : setup.tensors) {
      auto t = rg::make_versioned<rg_tensor>();
      t.kind = RG_TENSOR_DENSE;
      t.name = "t";
      t.ndim = 1;
      t.shape[0] = elements;
      t.decay = t.lr_scale = 1;
      x.tensors.push_back(t);
    }
    x.optimizer = setup.optimizer;
    x.ghosts = setup.ghosts;
    x.initial_weights = [](std::uint64_t first, std::uint64_t count, float* out) {
      for (std::uint64_t i = 0; i < count; ++i) out[i] = initial(first + i);
    };
    exchange_ = std::make_unique<exchange>(std::move(x));
    const auto w = exchange_->weights();
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = initial(i);
    exchange_->start();
    if (cluster_.server >= 0) exchange_->begin(exchange::serve, 0);
    if (cluster_.worker >= 0)
      begin_step();
    else
      phase_ = phase::finishing;
  }

  // Whether anything happened.
  bool advance() {
    bool moved = exchange_->poll(0, 0);
    for (;;) {
      switch (phase_) {
      case phase::beginning:
        if (!exchange_->done(exchange::begin_step)) return moved;
        seen_.assign(exchange_->weights().begin(), exchange_->weights().end());
        next_at_ = network_.now() + forward_ns + (rank_ == 1 ? setup_.straggler_ns : 0);
        tensor_ = 0;
        phase_ = phase::computing;
        break;
      case phase::computing:
        if (network_.now() < next_at_) return moved;
        compute_tensor();
        break;
      case phase::ending:
        if (!exchange_->done(exchange::end_step)) return moved;
        if (++step_ < setup_.steps)
          begin_step();
        else {
          exchange_->begin(exchange::finish, step_);
          phase_ = phase::finishing;
        }
        break;
      case phase::finishing:
        if (!exchange_->done(exchange::finish) || !exchange_->done(exchange::serve) || exchange_->busy()) return moved;
        phase_ = phase::over;
        break;
      case phase::over: return moved;
      }
      moved = true;
    }
  }

  bool over() const { return phase_ == phase::over; }
  std::uint64_t next_event() const {
    return std::min(exchange_->next_timer(),
                    phase_ == phase::computing ? next_at_ : std::numeric_limits<std::uint64_t>::max());
  }
  std::vector<float> weights() const { return {exchange_->weights().begin(), exchange_->weights().end()}; }
  bool is_worker() const { return cluster_.worker >= 0; }

private:
  enum class phase { beginning, computing, ending, finishing, over };

  void begin_step() {
    exchange_->begin(exchange::begin_step, step_);
    phase_ = phase::beginning;
  }

  void compute_tensor() {
    const rg_slice& s = exchange_->arena().slices[tensor_];
    if (!setup_.ghosts) {
      const auto w = exchange_->weights(), g = exchange_->gradients();
      for (std::uint64_t i = s.first; i < w.size(); ++i)
        if (w[i] != seen_[i])
          throw std::runtime_error(
              fmt::format("rank {} step {}: weight {} changed while the step still reads it", rank_, step_, i));
      for (std::uint64_t i = s.first; i < s.first + s.count; ++i)
        g[i] = gradient<float>(static_cast<std::uint32_t>(cluster_.worker), cluster_.workers, step_, i, w[i]);
    }
    exchange_->gradients_ready(s.first + s.count);
    if (++tensor_ < setup_.tensors.size()) {
      next_at_ = network_.now() + backward_ns_per_tensor;
    } else {
      exchange_->begin(exchange::end_step, step_);
      phase_ = phase::ending;
    }
  }

  const simulation_setup& setup_;
  virtual_network& network_;
  rg_cluster cluster_;
  std::uint32_t rank_;
  plugin_host host_;
  std::unique_ptr<exchange> exchange_;
  phase phase_ = phase::beginning;
  std::uint64_t step_ = 0, next_at_ = 0;
  std::size_t tensor_ = 0;
  std::vector<float> seen_; // the weights as the step began
};

} // namespace

std::uint64_t arena_elements(const simulation_setup& setup) {
  std::uint64_t n = 0;
  for (const std::int64_t t : setup.tensors) n += padded(t);
  return n;
}

simulation_result simulate(const registry& plugins, const simulation_setup& setup) {
  const component& strategy = plugins.find(kind::strategy, setup.strategy);
  const parameter_values values(strategy, with_defaults(strategy, setup.parameters));
  const auto layout = cluster_layout::make(setup.workers, setup.servers, setup.colocate);
  plugin_host host;
  const rg_plan plan = plan_of(strategy.strategy, values.data(), layout, host, setup.strategy);
  virtual_network network(layout.size(), setup.network);
  std::vector<std::unique_ptr<simulated_rank>> ranks;
  for (std::uint32_t r = 0; r < layout.size(); ++r)
    ranks.push_back(std::make_unique<simulated_rank>(setup, strategy, values.data(), layout, plan.lanes, network, r));

  std::vector<char> awake(ranks.size(), 1);
  for (std::uint64_t rounds = 0;; ++rounds) {
    if (rounds > 10'000'000)
      throw std::runtime_error(fmt::format("{}: no end in sight at {} ns", setup.strategy, network.now()));
    bool moved = false, over = true;
    for (std::uint32_t r = 0; r < ranks.size(); ++r) {
      // A rank that nothing happened to is left alone: there may be hundreds.
      if (awake[r] || network.has_ended(r) || ranks[r]->next_event() <= network.now()) awake[r] = ranks[r]->advance();
      moved |= awake[r] != 0;
      over &= ranks[r]->over();
    }
    if (over) break;
    if (moved) continue;
    std::uint64_t next = network.next_event();
    for (auto& r : ranks) next = std::min(next, r->next_event());
    if (next == std::numeric_limits<std::uint64_t>::max())
      throw std::runtime_error(
          fmt::format("{}: nothing can go on at {} ns: a deadlock", setup.strategy, network.now()));
    network.advance(next);
  }
  simulation_result result;
  for (std::uint32_t r = 0; r < layout.size(); ++r) {
    if (ranks[r]->is_worker()) result.weights.push_back(ranks[r]->weights());
    result.counted.push_back(network.counted(r));
  }
  result.virtual_ns = network.now();
  result.left_over = network.outstanding();
  return result;
}

std::vector<double> train_serially(const simulation_setup& setup) {
  const std::uint64_t n = arena_elements(setup);
  std::vector<double> w(n), v(n, 0.0), g(n);
  for (std::uint64_t i = 0; i < n; ++i) w[i] = initial(i);
  for (std::uint64_t step = 0; step < setup.steps; ++step) {
    double squares = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      g[i] = 0;
      for (std::uint32_t k = 0; k < setup.workers; ++k) g[i] += gradient<double>(k, setup.workers, step, i, w[i]);
      squares += g[i] * g[i];
    }
    const double clip =
        setup.optimizer.clip_norm > 0 ? std::min(1.0, setup.optimizer.clip_norm / std::sqrt(squares)) : 1.0;
    for (std::uint64_t i = 0; i < n; ++i) {
      v[i] = setup.optimizer.momentum * v[i] + clip * g[i];
      w[i] -= setup.optimizer.lr * v[i];
    }
  }
  return w;
}

} // namespace regatta::test

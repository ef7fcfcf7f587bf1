// SPDX-License-Identifier: Apache-2.0
#include "simulation.hpp"

#include "base/failure.hpp"
#include "cluster/layout.hpp"
#include "cluster/plan.hpp"
#include "folding.hpp"
#include "simulated_rank.hpp"
#include "step_trace.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

using rank_list = std::vector<std::unique_ptr<simulated_rank>>; // null: not simulated

// Says where each rank is, and for which peers, lanes and bytes it waits; of many ranks and operations the first ones.
std::string describe_deadlock(const simulation_setup& setup, const virtual_network& network,
                              const std::vector<std::unique_ptr<simulated_rank>>& ranks) {
  constexpr std::size_t most_ranks = 8, most_operations = 3;
  std::string text = fmt::format("{}: nothing can go on at {} ns: a deadlock", setup.strategy, network.now());
  const auto waits = network.waits();
  std::size_t named = 0;
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r]) continue; // folded
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

// Lets time pass until all ranks have ended. Only ranks for which something happened are advanced: there may be
// thousands.
class time_loop {
public:
  // `in_order`: the ranks for which something happens at the same time are advanced in the order of their numbers.
  time_loop(const simulation_setup& setup, virtual_network& network, rank_list& ranks, bool in_order)
      : setup_(setup), network_(network), ranks_(ranks), in_order_(in_order), set_for_(ranks.size(), 0),
        over_(ranks.size(), 1) {
    for (std::uint32_t r = 0; r < ranks.size(); ++r) {
      if (!ranks[r]) continue;
      awake_.push_back(r);
      over_[r] = 0;
    }
    left_ = awake_.size();
  }
  void run() {
    for (;; ++rounds_) {
      if (rounds_ > 100'000'000 + 100'000 * ranks_.size())
        throw std::runtime_error(fmt::format("{}: no end in sight at {} ns", setup_.strategy, network_.now()));
      advance_ranks();
      if (!left_ && (gone_ || !setup_.stays)) return;
      const std::uint64_t next = std::min(network_.next_event(), alarms_.empty() ? never : alarms_.top().first);
      if (next > network_.now() && network_.end_instant()) {
        network_.take_touched(awake_);
        continue;
      }
      if (next == never && setup_.stays && !gone_ && all_may_stop()) {
        lose_workers();
        continue;
      }
      if (next == never && setup_.stop_at && all_may_stop()) return;
      if (next == never) throw std::runtime_error(describe_deadlock(setup_, network_, ranks_));
      pass_to(next);
    }
  }
  std::uint64_t ahead() const { return ahead_; } // simulation_result.ahead

private:
  void advance_ranks() {
    if (in_order_) std::ranges::sort(awake_);
    for (std::size_t i = 0; i < awake_.size(); ++i) {
      const std::uint32_t r = awake_[i];
      const std::uint64_t ended = ranks_[r]->steps_ended();
      while (ranks_[r]->advance()) {
      }
      if (ranks_[r]->steps_ended() != ended) rounds_ = 0;
      if (!over_[r] && ranks_[r]->over()) {
        over_[r] = 1;
        --left_;
      }
      const std::uint64_t next = ranks_[r]->next_event();
      if (next != never && next > network_.now() && set_for_[r] != next) {
        alarms_.push({next, r});
        set_for_[r] = next;
      }
      network_.take_touched(awake_);
      if (!network_.misuse().empty()) throw std::runtime_error(network_.misuse());
    }
    awake_.clear();
  }
  bool all_may_stop() const {
    return std::ranges::all_of(ranks_, [](const auto& r) { return r->may_stop(); });
  }
  void lose_workers() {
    gone_ = true;
    const std::vector<std::uint32_t> last{setup_.workers - 1};
    const std::vector<std::uint32_t>& leavers = setup_.leavers.empty() ? last : setup_.leavers;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      if (std::ranges::find(leavers, r) != leavers.end()) continue; // over
      left_ += over_[r];
      over_[r] = 0;
      awake_.push_back(r);
      ranks_[r]->go_on_without(leavers);
    }
  }
  void pass_to(std::uint64_t next) {
    if (network_.now() < setup_.late_ns && next >= setup_.late_ns)
      for (const auto& r : ranks_) ahead_ = std::max(ahead_, r ? r->steps_ended() : 0);
    network_.advance(next);
    if (!network_.misuse().empty()) throw std::runtime_error(network_.misuse());
    network_.take_touched(awake_);
    for (; !alarms_.empty() && alarms_.top().first <= network_.now(); alarms_.pop()) {
      awake_.push_back(alarms_.top().second);
      if (set_for_[awake_.back()] == alarms_.top().first) set_for_[awake_.back()] = 0;
    }
  }

  const simulation_setup& setup_;
  virtual_network& network_;
  rank_list& ranks_;
  bool in_order_;
  using alarm = std::pair<std::uint64_t, std::uint32_t>; // time, rank
  std::priority_queue<alarm, std::vector<alarm>, std::greater<>> alarms_;
  std::vector<std::uint64_t> set_for_; // by rank: the time of its alarm
  std::vector<std::uint32_t> awake_;
  std::vector<char> over_;
  std::uint64_t rounds_ = 0; // since the last step that a worker ended
  std::size_t left_ = 0;
  std::uint64_t ahead_ = 0;
  bool gone_ = false; // simulation_setup.stays
};

void require_alike(const simulation_setup& setup, folded_ranks& folded, const rank_list& ranks,
                   std::size_t unreceived) {
  folded.require_equal_members();
  if (unreceived)
    throw failure(exit_code::plugin, fmt::format("strategy {} says that ranks are alike (rg_plan.symmetry), but {} "
                                                 "messages of ranks that are not simulated have no receive: declare "
                                                 "RG_SYMMETRY_NONE, or do not fold",
                                                 setup.strategy, unreceived));
  for (const auto& [first, second] : folded.members())
    if (!folded.rounded() && ranks[first]->steps() != ranks[second]->steps())
      throw failure(exit_code::plugin,
                    fmt::format("strategy {} says that ranks {} and {} are alike (rg_plan.symmetry), but their steps "
                                "take different times: declare RG_SYMMETRY_NONE, or do not fold",
                                setup.strategy, first, second));
}

simulation_result collect(const simulation_setup& setup, const virtual_network& network, const rank_list& ranks,
                          const folded_ranks* folded) {
  simulation_result result;
  std::vector<virtual_network::counts> counted = network.counted();
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    const std::uint32_t like = folded ? folded->stands_for(r) : r;
    const simulated_rank& x = *ranks[like];
    result.simulated += like == r;
    if (like == r) x.require_no_damage();
    if (x.is_worker()) {
      result.weights.push_back(x.weights());
      result.checksums.push_back(x.checksums());
      result.steps.push_back(x.steps());
    }
    const auto changed = [&](bool as_server) {
      std::map<std::uint64_t, std::vector<float>> rows;
      if (const row_table* t = x.table(as_server))
        t->for_each_changed([&](std::uint64_t row, std::span<const float> w) { rows[row].assign(w.begin(), w.end()); });
      return rows;
    };
    result.worker_rows.push_back(changed(false));
    result.server_rows.push_back(changed(true));
    result.server_held.push_back(x.table(true) ? x.table(true)->held() : 0);
    result.records.push_back(x.records());
    result.state_bytes.push_back(x.state_bytes());
    if (like == r) continue;
    auto sent_to = std::exchange(counted[like].sent_to, {}); // large, and not copied
    counted[r] = counted[like];
    counted[like].sent_to = std::move(sent_to);
  }
  result.counted = std::move(counted);
  if (setup.stop_at) {
    setup.stop_at->step = setup.steps;
    setup.stop_at->ranks.clear();
    for (const auto& r : ranks) setup.stop_at->ranks.push_back(r->save());
  }
  result.virtual_ns = network.now();
  result.left_over = network.outstanding();
  if (folded) result.rounded = folded->rounded();
  return result;
}

void require_consistent(const simulation_setup& s, const cluster_layout& layout) {
  const auto require = [](const char* what, std::size_t expected, const char* each, std::size_t got) {
    if (got && got != expected)
      throw std::runtime_error(fmt::format("{}: expected {}, one for each {}, got {}", what, expected, each, got));
  };
  require("compute_kinds", s.workers, "worker", s.compute_kinds.size());
  require("link_of", layout.size(), "rank", s.link_of.size());
  if (s.trace) require("trace: recorders", layout.size(), "rank", s.trace->recorders.size());
  const std::vector<std::uint32_t>& group_of = s.cores.group_of;
  if (const std::size_t groups = s.cores.groups.size();
      groups && (group_of.size() != layout.size() || *std::ranges::max_element(group_of) >= groups))
    throw std::runtime_error(
        fmt::format("cores: expected a group for each of {} ranks, below {}", layout.size(), groups));
  if (!s.tables.empty() && (!s.ghosts || s.table_rows || !s.touches))
    throw std::runtime_error("tables: expected ghosts, `touches`, and no table_rows");
  if (s.network.links.empty()) return;
  for (const switch_tier& t : s.network.tiers)
    require("tiers: group_of", s.network.links.size(), "link", t.group_of.size());
  const std::vector<std::uint32_t>& links = links_of(s, layout);
  for (std::size_t r = 0; r < links.size(); ++r)
    if (links[r] >= s.network.links.size())
      throw std::runtime_error(fmt::format("link_of: rank {} has link {}, of {}: expected a smaller number", r,
                                           links[r], s.network.links.size()));
}

// The strategy of a simulation, and where its ranks are. Borrows what it names.
struct simulated_strategy {
  const component& code;
  const rg_value* parameters;
  const cluster_layout& layout;
  const rg_plan& plan;
};

// Simulates the ranks that `folded` names; null: all.
simulation_result simulate_ranks(const simulation_setup& setup, const simulated_strategy& strategy,
                                 folded_ranks* folded) {
  const cluster_layout& layout = strategy.layout;
  virtual_network network(layout.size(), setup.network,
                          setup.network.links.empty() ? std::vector<std::uint32_t>() : links_of(setup, layout));
  if (setup.recorder) network.record(*setup.recorder);
  if (folded) network.fold(*folded);
  std::optional<shared_cores> cores;
  if (!setup.cores.groups.empty()) network.share(cores.emplace(setup.cores));
  rank_list ranks(layout.size());
  for (std::uint32_t r = 0; r < layout.size(); ++r)
    if (!folded || folded->is_simulated(r))
      ranks[r] = std::make_unique<simulated_rank>(setup, strategy.code, strategy.parameters, layout, strategy.plan,
                                                  network, r, cores ? &*cores : nullptr);
  // Ranks that share cores may wait for the same one: those of hosts that are alike then take it in the same order.
  time_loop loop(setup, network, ranks, cores && cores->any_shared());
  try {
    loop.run();
  } catch (...) {
    if (folded) folded->require_equal_members(); // the better explanation
    throw;
  }
  if (folded) require_alike(setup, *folded, ranks, network.unreceived());
  simulation_result result = collect(setup, network, ranks, folded);
  result.ahead = loop.ahead();
  return result;
}

} // namespace

simulation_result simulate(const registry& plugins, const simulation_setup& setup) {
  const component& strategy = plugins.find(kind::strategy, setup.strategy);
  const parameter_values values(strategy, setup.parameters);
  const auto layout = cluster_layout::make(setup.workers, setup.servers, setup.colocate, setup.hosts);
  require_consistent(setup, layout);
  plugin_host host;
  const rg_plan plan = plan_of(strategy.strategy, values.data(), layout, setup.optimizer, host, setup.strategy);
  if (setup.ghosts && (plan.flags & RG_PLAN_BYTES))
    throw std::runtime_error(
        fmt::format("{} works on bytes (RG_PLAN_BYTES), which ghosts do not have", setup.strategy));
  const auto run = [&](folded_ranks* folded) {
    return simulate_ranks(setup, {strategy, values.data(), layout, plan}, folded);
  };
  if (setup.fold == folding::off || setup.recorder || setup.trace) return run(nullptr);
  std::string whole = folded_ranks::obstacle(setup, plan, layout);
  if (whole.empty()) {
    folded_ranks folded(setup, plan, layout);
    if (setup.fold == folding::checked) return run(&folded);
    try {
      return run(&folded);
    } catch (const std::exception& e) {
      whole = fmt::format("the folded simulation failed: {}", e.what());
    }
  }
  simulation_result result = run(nullptr);
  result.whole = whole;
  return result;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Tests of what a strategy declares in plan() and talks(): that it depends on its arguments alone, and is true.
#include "check/strategy/simulated.hpp"

#include "cluster/layout.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <span>

#include <fmt/format.h>

namespace regatta::conformance {
namespace {

// The new number of each rank.
using renaming = std::vector<std::uint32_t>;
// Returns renamings of a symmetry from which all of its others are composed; `on_host`: the workers on each host.
std::vector<renaming> renamings(std::uint32_t symmetry, std::uint32_t workers, std::uint32_t on_host,
                                std::uint32_t ranks) {
  renaming same(ranks);
  std::iota(same.begin(), same.end(), 0u);
  std::vector<renaming> all;
  const auto add = [&](std::uint32_t first, std::uint32_t end, const auto& renamed) {
    all.push_back(same);
    for (std::uint32_t r = first; r < end; ++r) all.back()[r] = renamed(r);
  };
  if (symmetry == RG_SYMMETRY_ROTATION) add(0, workers, [&](std::uint32_t r) { return (r + 1) % workers; });
  if (symmetry == RG_SYMMETRY_HOSTS) add(0, workers, [&](std::uint32_t r) { return (r + on_host) % workers; });
  for (std::uint32_t k = 1; symmetry == RG_SYMMETRY_XOR && k < workers; k *= 2)
    add(0, workers, [&](std::uint32_t r) { return r ^ k; });
  for (std::uint32_t r = 1; symmetry == RG_SYMMETRY_CLASSES && r < ranks; ++r)
    if (r != workers) add(r - 1, r + 1, [&](std::uint32_t x) { return x == r ? r - 1 : r; });
  return all;
}

// Throws failed unless as many messages go between renamed ranks as between the ranks themselves, and as many bytes up
// to one chunk of part_of() in each message: buckets may cut a tensor into parts that cannot be equal.
void expect_symmetric(const simulation_setup& x, const simulation_result& r, const renaming& renamed) {
  for (std::uint32_t from = 0; from < renamed.size(); ++from)
    for (const auto& [to, sent] : r.counted[from].sent_to) {
      const auto& [peer, lane] = to;
      const auto& others = r.counted[renamed[from]].sent_to;
      const auto found = others.find({renamed[peer], lane});
      const auto there = found == others.end() ? std::pair<std::uint64_t, std::uint64_t>() : found->second;
      const std::uint64_t more = std::max(there.second, sent.second) - std::min(there.second, sent.second);
      require(there.first == sent.first && more <= sent.first * 16 * sizeof(float),
              fmt::format("{}rank {} sends {} messages of {} bytes to rank {} on lane {}, and rank {}, which "
                          "rg_plan.symmetry says is like it, {} of {} to rank {}",
                          title(x), from, sent.first, sent.second, peer, lane, renamed[from], there.first, there.second,
                          renamed[peer]));
    }
}

void symmetric(const subject& s) {
  bool declared = false;
  refused_sizes refused;
  for (std::uint32_t workers = 2; workers <= 8; ++workers)
    for (std::uint32_t servers = 1; servers <= 3; ++servers) {
      if (refused.refuses(s, workers, servers)) continue;
      const rg_plan p = plan_for(s, workers, servers);
      require(p.symmetry <= RG_SYMMETRY_HOSTS, fmt::format("plan().symmetry is {}: use an RG_SYMMETRY_*", p.symmetry));
      if (!p.symmetry || (servers > 1 && !needs_servers(s))) continue;
      declared = true;
      require(p.symmetry == RG_SYMMETRY_CLASSES || !(p.flags & RG_PLAN_SERVERS),
              "plan().symmetry is of workers alone, and there are servers: use RG_SYMMETRY_CLASSES");
      require(p.symmetry != RG_SYMMETRY_XOR || std::has_single_bit(workers),
              fmt::format("plan().symmetry is RG_SYMMETRY_XOR for {} workers: it needs a power of two", workers));
      simulation_setup x = setup_for(s, workers, servers);
      set_shapes(x, {{13440}, {16, 840}, {16, 105, 8, 2}});
      const bool by_hosts = p.symmetry == RG_SYMMETRY_HOSTS; // of which there are several, with equally many workers
      for (x.hosts = by_hosts ? 2 : 1; x.hosts <= (by_hosts ? workers : 1); ++x.hosts) {
        if (workers % x.hosts) continue;
        const simulation_result r = run_simulation(s, x);
        for (const renaming& renamed : renamings(p.symmetry, workers, workers / x.hosts, workers + x.servers))
          expect_symmetric(x, r, renamed);
      }
    }
  refused.tell();
  if (!declared) throw skipped("it declares no symmetry (rg_plan.symmetry)");
}

void plans(const subject& s) {
  const parameter_values values(*s.tested, s.parameters);
  const std::uint32_t some = workers_near(s, 2);
  const std::uint32_t flags = some_plan(s).flags;
  refused_sizes refused;
  for (std::uint32_t workers = 1; workers <= 7; ++workers)
    for (std::uint32_t servers = 1; servers <= 3; ++servers) {
      if (refused.refuses(s, workers, servers)) continue;
      const rg_plan a = plan_for(s, workers, servers), b = plan_for(s, workers, servers);
      require(a.flags == b.flags && a.lanes == b.lanes && a.period == b.period && a.steady_from == b.steady_from &&
                  a.symmetry == b.symmetry && a.bound == b.bound,
              "plan() gives another result for the same arguments");
      require(a.flags == flags, fmt::format("plan() gives other flags for {} workers than for {}", workers, some));
      if (!s.tested->strategy.talks) continue;
      const cluster_layout layout = cluster_layout::make(workers, a.flags & RG_PLAN_SERVERS ? servers : 0, false);
      const rg_cluster cluster = layout.view(UINT32_MAX);
      for (std::uint32_t i = 0; i < layout.size(); ++i)
        for (std::uint32_t k = 0; k < i; ++k)
          require(!s.tested->strategy.talks(values.data(), &cluster, i, k) ==
                      !s.tested->strategy.talks(values.data(), &cluster, k, i),
                  fmt::format("talks({}, {}) and talks({}, {}) differ; it must be symmetric", i, k, k, i));
    }
  refused.tell();
}

void ghosts(const subject& s) {
  if (some_plan(s).flags & RG_PLAN_BYTES) throw skipped("it works on bytes (RG_PLAN_BYTES)");
  simulation_setup x = setup_for(s, workers_near(s, 5), 2);
  x.ghosts = true;
  run_simulation(s, x);
  // A strategy that looks at bytes where it can trains differently where it cannot.
  x.ghosts = false;
  const std::vector<float> usual = run_simulation(s, x).weights.at(0);
  x.no_pointers = true;
  const std::vector<float> without = run_simulation(s, x).weights.at(0);
  for (std::size_t i = 0; i < usual.size(); ++i)
    require(agree(without[i], usual[i]),
            fmt::format("{}weight {} is {}, but {} where pointer() fails, as it does on a device: a strategy whose "
                        "results depend on pointer() declares RG_PLAN_BYTES",
                        title(x), i, usual[i], without[i]));
}

// A tensor that is not row-major (rg_tensor.reordered) has its elements in an order that the strategy does not know: of
// its shape only the number of elements means anything.
void reordered_shapes(const subject& s) {
  if (some_plan(s).flags & RG_PLAN_ROW_MAJOR) throw skipped("it asks for row-major tensors (RG_PLAN_ROW_MAJOR)");
  simulation_setup x = setup_for(s, workers_near(s, 3), 2), y;
  x.late_tensor = x.flat_tensor = SIZE_MAX;
  y = x;
  set_shapes(x, {{7}, {5, 3, 3, 3}, {12, 10}});
  set_shapes(y, {{7}, {3, 5, 3, 3}, {10, 12}});
  const simulation_result a = run_simulation(s, x), b = run_simulation(s, y);
  require(a.weights == b.weights &&
              std::equal(a.counted.begin(), a.counted.end(), b.counted.begin(),
                         [](const auto& p, const auto& q) { return p.bytes_sent == q.bytes_sent; }),
          title(x) + "a convolution of 5x3x3x3 whose elements are not row-major (rg_tensor.reordered) trains otherwise "
                     "than one of 3x5x3x3: a strategy that uses the shapes of tensors declares RG_PLAN_ROW_MAJOR");
}

// Tensors that must not be compressed (rg_tensor.compressible is 0) are summed as exactly as by any other strategy.
void incompressible(const subject& s) {
  if (!lossy(some_plan(s))) throw skipped("it does not declare RG_PLAN_LOSSY");
  for (const std::uint32_t workers : accepted_sizes(s, {2, 3, 4, 5})) {
    simulation_setup x = setup_for(s, workers, 2);
    x.compressible.assign(x.tensors.size(), 0);
    const simulation_result r = run_simulation(s, x);
    const std::vector<double> expected = train_serially(x);
    for (std::size_t i = 0; i < r.weights.at(0).size(); ++i)
      require(
          agree(r.weights[0][i], expected[i]),
          fmt::format("{}weight {} is {}; one worker with all gradients gets {}: a tensor whose rg_tensor.compressible "
                      "is 0 is sent as it is",
                      title(x), i, r.weights[0][i], expected[i]));
  }
}

// Returns the number of messages that each rank has sent after so many periods, the warm-up before them included.
std::vector<std::uint64_t> messages_after(const subject& s, simulation_setup& x, const rg_plan& p,
                                          std::uint64_t periods) {
  x.steps = whole_periods(p, steps_until_steady(p)) + periods * p.period;
  std::vector<std::uint64_t> sent;
  for (const auto& c : run_simulation(s, x).counted) sent.push_back(c.messages_sent);
  return sent;
}

// Returns after how many periods the numbers of the later half repeat, at most a third of that; 0: they do not.
std::uint64_t repetition(std::span<const std::vector<std::uint64_t>> by_period) {
  const auto later = by_period.subspan(by_period.size() / 2);
  for (std::size_t k = 1; 3 * k <= later.size(); ++k)
    if (std::equal(later.begin() + static_cast<std::ptrdiff_t>(k), later.end(), later.begin())) return k;
  return 0;
}

// Messages repeat after rg_plan.period steps: the timed region covers whole periods. A strategy that draws the workers
// of an exchange at random (pairs of an odd number of workers leave one out) has no period in which each rank sends as
// many messages, and is compared by the sum over all ranks. Workers that take turns have a longer period than declared:
// their numbers repeat. Random ones of 24 periods, one of three workers left out in each, do so in 1 of 3^16 cases.
void periodic(const subject& s) {
  const std::uint32_t workers = workers_near(s, 3);
  const rg_plan p = plan_for(s, workers, 2);
  if (needs_servers(s) && !(p.flags & RG_PLAN_SYNCHRONOUS))
    throw skipped("how often workers push and pull depends on their pace");
  constexpr std::uint64_t some = 12, many = 49; // the last period
  simulation_setup x = setup_for(s, workers, 2);
  std::vector<std::uint64_t> before = messages_after(s, x, p, 1);
  std::vector<std::vector<std::uint64_t>> by_period; // from period 2 on: messages of each rank
  bool ranks_differ = false;
  for (std::uint64_t period = 2; period <= (ranks_differ ? many : some); ++period) {
    const std::vector<std::uint64_t> now = messages_after(s, x, p, period);
    std::vector<std::uint64_t>& sent = by_period.emplace_back(now.size());
    std::transform(now.begin(), now.end(), before.begin(), sent.begin(), std::minus());
    before = now;
    const auto sum = [](const auto& v) { return std::accumulate(v.begin(), v.end(), std::uint64_t{0}); };
    require(sum(sent) == sum(by_period[0]),
            fmt::format("{}its ranks send {} messages in period 2 and {} in period {} of {} steps; expected as many in "
                        "each (rg_plan.period)",
                        title(x), sum(by_period[0]), sum(sent), period, p.period));
    ranks_differ = ranks_differ || sent != by_period[0];
  }
  if (!ranks_differ) return;
  const std::uint64_t turns = repetition(by_period);
  require(turns != 1,
          fmt::format("{}how many messages each rank sends changes in the first {} steps, and then no more; "
                      "rg_plan.steady_from is {}",
                      title(x), x.steps, p.steady_from));
  require(!turns, fmt::format("{}how many messages each rank sends repeats after {} steps; rg_plan.period is {}",
                              title(x), turns * p.period, p.period));
  remark(fmt::format("with {} workers, how many messages each rank sends varies from period to period and does not "
                     "repeat, as with random pairs; the sum over all ranks is always the same",
                     workers));
}

// While the first step of a worker is delayed, the others end at most the steps before rg_plan.bound, and then those of
// a period up to the one that waits.
void bounded(const subject& s) {
  if (!(some_plan(s).flags & RG_PLAN_BOUNDED)) throw skipped("it does not declare RG_PLAN_BOUNDED");
  for (const std::uint32_t workers : accepted_sizes(s, {2, 3, 4, 5, 7})) {
    const rg_plan p = plan_for(s, workers, 2);
    const std::uint64_t most = p.bound + p.period - 1;
    if (most > 5000) throw skipped(fmt::format("workers may be {} steps ahead", most));
    simulation_setup x = setup_for(s, workers, 2);
    x.late_ns = 1'000'000'000;
    x.steps = whole_periods(p, most + 2 * p.period);
    const std::uint64_t ahead = run_simulation(s, x).ahead;
    require(ahead <= most, fmt::format("{}a worker ends {} steps before another has begun its first; expected at most "
                                       "{} (rg_plan.bound is {}, its period {})",
                                       title(x), ahead, most, p.bound, p.period));
  }
}

// Uses a network on which a message without a receive blocks those of the other lanes.
void lanes_in_one_queue(const subject& s) {
  if (some_plan(s).flags & RG_PLAN_INDEPENDENT) throw skipped("it needs independent lanes (RG_PLAN_INDEPENDENT)");
  for_all(s, [&](simulation_setup& x) {
    if (x.network.eager || !x.network.adds || x.workers > 5) return;
    x.network.one_queue = true;
    try {
      run_simulation(s, x);
    } catch (const failed& e) {
      throw failed(std::string(e.what()) + "; here lanes block each other: declare RG_PLAN_INDEPENDENT if the strategy "
                                           "cannot run so");
    }
  });
}

// The ranks lie on two or three hosts, not as many on each.
void unequal_hosts(const subject& s) {
  const rg_plan p = some_plan(s);
  if (p.flags & RG_PLAN_EQUAL_HOSTS) throw skipped("it needs as many workers on each host (RG_PLAN_EQUAL_HOSTS)");
  for (const std::uint32_t workers : accepted_sizes(s, {3, 4, 5, 7})) {
    simulation_setup x = setup_for(s, workers, 2);
    x.hosts = workers == 4 ? 3 : 2;
    if (const std::string why = why_refused(s, workers, 2, {}, x.hosts); !why.empty()) {
      remark(fmt::format("{} workers on {} hosts are left out: plan() rejects them: {}", workers, x.hosts, why));
      continue;
    }
    try {
      const simulation_result r = run_simulation(s, x);
      if (p.flags & RG_PLAN_SYNCHRONOUS) expect_identical(x, r);
    } catch (const failed& e) {
      throw failed(fmt::format("on {} hosts: {}; declare RG_PLAN_EQUAL_HOSTS if the strategy needs as many workers on "
                               "each",
                               x.hosts, e.what()));
    }
  }
}

// Uses a network on which a message shorter than its receive is an error.
void exact_sizes(const subject& s) {
  if (some_plan(s).flags & RG_PLAN_SHORT)
    throw skipped("it sends messages shorter than their receives (RG_PLAN_SHORT)");
  for_all(s, [&](simulation_setup& x) {
    x.network.exact = true;
    run_simulation(s, x);
  });
}

} // namespace

std::vector<test> declaration_tests() {
  return {
      {"plan", "plan() and talks() depend only on their arguments, and talks() is symmetric", plans},
      {"symmetry", "ranks that it declares to be alike (rg_plan.symmetry) send as many messages and bytes", symmetric},
      {"period",
       "in each rg_plan.period steps its ranks send as many messages together, and each of them unless it varies at "
       "random",
       periodic},
      {"bound", "with RG_PLAN_BOUNDED, no worker is further ahead than rg_plan.bound says", bounded},
      {"shapes", "without RG_PLAN_ROW_MAJOR, the shapes of tensors that are not row-major do not matter",
       reordered_shapes},
      {"compressible", "a lossy strategy sums tensors exactly that must not be compressed", incompressible},
      {"ghosts", "it runs on regions without bytes, and trains alike where pointer() fails", ghosts},
      {"lanes", "without RG_PLAN_INDEPENDENT, runs end where lanes block each other", lanes_in_one_queue},
      {"hosts", "without RG_PLAN_EQUAL_HOSTS, it runs on hosts with unequal numbers of ranks", unequal_hosts},
      {"exact-sizes", "messages are as long as their receives", exact_sizes},
  };
}

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
#include "campaign/prepare.hpp"

#include "base/findings.hpp"
#include "base/units.hpp"
#include "campaign/host_group.hpp"
#include "cluster/plan.hpp"
#include "data/source.hpp"
#include "launch/cpus.hpp"
#include "launch/host_link.hpp"
#include "launch/memory.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

void refuse(findings& wrong, const std::string& text) {
  wrong.add({exit_code::usage, text});
}

// Adds to `wrong` each reason why the strategy cannot run over the transport.
void check_fit(const case_config& c, const plugin_facts& facts, bool communicates, findings& wrong) {
  const rg_plan& plan = facts.plan;
  const rg_transport_caps& caps = facts.caps;
  const std::string pair =
      fmt::format("transport.plugin: strategy {} cannot run over transport {}: ", c.strategy.id, c.transport.id);
  if (communicates && ((caps.flags & RG_CAP_NONE) || caps.p2p == RG_P2P_NONE))
    refuse(wrong, pair + "it sends messages between ranks, and this transport has no connections; use shm or tcp");
  if ((plan.flags & RG_PLAN_INDEPENDENT) && caps.p2p == RG_P2P_ORDERED)
    refuse(wrong, pair + "it needs independent lanes, and this transport delivers all messages in one order");
  if (communicates && (plan.flags & RG_PLAN_SHORT) && (caps.flags & RG_CAP_EXACT_SIZE))
    refuse(wrong,
           pair + "it sends messages shorter than their receive buffers, and this transport requires equal sizes");
  if (caps.flags & RG_CAP_VIRTUAL)
    refuse(wrong, fmt::format("transport {} runs in virtual time: it is for simulations", c.transport.id));
  const bool of_this_kind = facts.transport_device.empty() || facts.transport_device == c.train.device;
  const std::uint32_t reached = of_this_kind ? caps.memory : caps.memory & ~std::uint32_t{RG_MEMORY_DEVICE};
  if (caps.memory && !(reached & facts.regions))
    refuse(wrong, fmt::format("transport {} cannot reach weights and gradients, which are kept in the memory of "
                              "train.device = \"{}\": {}use shm or tcp",
                              c.transport.id, c.train.device,
                              facts.transport_device.empty()
                                  ? ""
                                  : fmt::format("it is for train.device = \"{}\"; ", facts.transport_device)));
}

// Throws failure with the reason if the strategy or the transport cannot use the hosts of the ranks.
void check_hosts(const case_config& c, const rg_plan& plan, const rg_transport_caps& caps, const rg_cluster& all,
                 bool communicates, findings& wrong) {
  std::map<std::uint32_t, std::uint32_t> workers; // by host
  for (std::uint32_t r = 0; r < all.workers; ++r) ++workers[all.host_of[r]];
  const bool equal = std::ranges::all_of(workers, [&](const auto& h) { return h.second == workers.begin()->second; });
  if ((plan.flags & RG_PLAN_EQUAL_HOSTS) && all.workers > 1 && (workers.size() < 2 || !equal))
    refuse(wrong,
           fmt::format("cluster.hosts: expected several hosts with equally many of the {} workers, as strategy {} "
                       "needs them with these parameters, got {}; cluster.hosts = 2 simulates two",
                       all.workers, c.strategy.id, workers.size()));
  const std::set<std::uint32_t> hosts(all.host_of, all.host_of + all.size);
  if (communicates && hosts.size() > 1 && (caps.flags & RG_CAP_ONE_HOST))
    refuse(wrong,
           fmt::format("cluster.hosts: expected 1 over transport {}, which connects the ranks of one host, got {}; "
                       "use transport.plugin = \"auto\" or \"tcp\"",
                       c.transport.id, hosts.size()));
}

std::vector<std::string> own_addresses(const plugin_facts_cache& answers, const std::string& interface) {
  if (!answers.addresses) return {"127.0.0.1"};
  try {
    return answers.addresses(interface);
  } catch (const failure& f) {
    throw failure(f.code(), fmt::format("cluster.interface: {}", f.what()));
  }
}

std::string role_of(const rg_cluster& c) {
  std::string role = c.worker >= 0 ? fmt::format("worker {}", c.worker) : "";
  if (c.server >= 0) role += fmt::format("{}server {}", role.empty() ? "" : " + ", c.server);
  return role;
}

// Assigns CPUs and addresses to the ranks of each host, and fills run.ranks. Ranks of oversubscribed hosts do not spin.
// `own_threads`: rg_transport_caps.own_threads.
void assign_hosts(prepared_run& run, const case_config& c, const placement& places, const host_group* hosts,
                  const std::vector<std::vector<std::string>>& addresses, std::size_t own_threads) {
  const cluster_layout& layout = run.job.layout;
  run.job.several_hosts = hosts && hosts->hosts().size() > 1;
  const std::size_t threads = static_cast<std::size_t>(c.cluster.threads) + input_threads(c.data) + own_threads;
  std::map<std::uint32_t, std::vector<std::uint32_t>> ranks; // by host
  for (std::uint32_t r = 0; r < layout.size(); ++r) ranks[hosts ? places.host[r] : 0].push_back(r);
  std::map<std::uint32_t, std::vector<int>> cpus_of;
  bool oversubscribed = false;
  for (const auto& [host, mine] : ranks) {
    const cpu_assignment cpus =
        assign_cpus(hosts ? hosts->hosts()[host]->cpus : this_hosts_cpus(), mine.size(), threads, c.cluster.pin);
    for (std::size_t i = 0; i < mine.size(); ++i) cpus_of[mine[i]] = cpus.cpus[i];
    oversubscribed |= cpus.oversubscribed;
    if (cpus.oversubscribed)
      run.warnings.push_back(
          fmt::format("oversubscribed: {} ranks x {} threads on {} cores{}", mine.size(), threads, cpus.available,
                      hosts && ranks.size() > 1 ? fmt::format(" of host {}", hosts->hosts()[host]->name) : ""));
  }
  run.job.spin_ns = oversubscribed ? 0 : static_cast<std::uint64_t>(c.cluster.spin_ns);
  if (oversubscribed && c.cluster.spin_ns) run.warnings.push_back("cluster.spin is off: ranks share cores");
  const auto host_of = [&](std::uint32_t rank) { return hosts ? places.host[rank] : 0; };
  run.address = addresses.front().front();
  run.job.addresses.resize(*std::ranges::max_element(layout.host_of) + 1);
  for (std::uint32_t r = 0; r < layout.size(); ++r) run.job.addresses[layout.host_of[r]] = addresses[host_of(r)];
  const auto job = std::make_shared<const nlohmann::json>(to_json(run.job));
  for (std::uint32_t r = 0; r < layout.size(); ++r)
    run.ranks.push_back({role_of(layout.view(r)), cpus_of[r], job, host_of(r), hosts ? places.slot[r] : 0});
}

} // namespace

prepared_run prepare(plugin_facts_cache& answers, const case_config& c, const std::string& kernels) {
  const plugin_facts& facts = answers.of(c);
  const rg_plan& plan = facts.plan;
  const component& strategy = answers.plugins().find(kind::strategy, c.strategy.id);
  prepared_run run;
  run.job.config = c;
  if (!facts.model.executor.empty()) run.job.config.train.executor = {facts.model.executor};
  run.job.batch = facts.model.batch_per_worker;
  run.job.kernels = kernels;
  run.job.files = facts.files;
  findings wrong;
  if (c.cluster.straggler.factor > 1 && c.cluster.straggler.rank >= c.cluster.workers)
    refuse(wrong, fmt::format("cluster.straggler.rank: expected a worker from 0 to {}, got {}", c.cluster.workers - 1,
                              c.cluster.straggler.rank));
  if ((plan.flags & RG_PLAN_SERVERS) && !facts.servers)
    refuse(wrong,
           fmt::format("cluster.servers: expected 1 or more for strategy {}, which needs servers, got 0", strategy.id));
  host_group* const hosts = answers.hosts;
  placed_layout placed = place_case(answers.plugins(), c, facts.servers, hosts);
  if (!placed.lacking.empty()) throw failure(exit_code::skipped, placed.lacking);
  run.job.layout = std::move(placed.layout);
  std::vector<std::vector<std::string>> addresses; // by host of the launcher, or of this host alone
  wrong.attempt([&] {
    if (hosts)
      addresses = hosts->addresses(c.cluster.interface);
    else
      addresses.push_back(own_addresses(answers, c.cluster.interface));
  });
  if (hosts) wrong.attempt([&] { hosts->require_equal_isa(c.train.isa); });
  run.synchronous = plan.flags & RG_PLAN_SYNCHRONOUS;
  const cluster_layout& layout = run.job.layout;
  run.communicates = facts.communicates;
  const component& transport = answers.plugins().find(kind::transport, c.transport.id);
  if (!transport.launcher.empty()) {
    if (!hosts) wrong.add(launcher_missing(transport.id, transport.launcher, layout.size(), "run FILE.toml"));
    run.launcher_plugin = transport.file.string();
  }
  check_fit(c, facts, run.communicates, wrong);
  check_hosts(c, plan, facts.caps, layout.view(UINT32_MAX), run.communicates, wrong);
  if ((plan.flags & RG_PLAN_COLLECTIVES) && run.communicates && !facts.collectives)
    refuse(wrong, fmt::format("strategy.plugin: {} with these parameters needs native collectives, which transport "
                              "{} does not have: use another one, or leave out \"native\"",
                              c.strategy.id, c.transport.id));
  run.exchanges_rows = (plan.flags & RG_PLAN_ROWS) && !(run.communicates && (facts.caps.flags & RG_CAP_EXACT_SIZE));
  optimizer_config optimizer = run.job.optimizer();
  wrong.attempt([&] { hand_over_momentum(plan, strategy.id, optimizer); });
  wrong.raise();

  run.job.period = plan.period;
  run.job.row_major = plan.flags & RG_PLAN_ROW_MAJOR;
  run.job.warmup = static_cast<std::uint64_t>(c.measure.warmup);
  if (plan.steady_from > run.job.warmup) {
    run.warnings.push_back(fmt::format("warm-up raised from {} to {} steps: strategy {} is steady only from there on",
                                       run.job.warmup, plan.steady_from, strategy.id));
    run.job.warmup = plan.steady_from;
  }
  if (c.measure.seconds > 0 && run.job.warmup == 0) run.job.warmup = 1; // to measure the time of a step
  if (!(c.measure.seconds > 0)) {
    const auto steps = static_cast<std::uint64_t>(c.measure.steps);
    run.job.steps = (steps + plan.period - 1) / plan.period * plan.period;
    if (run.job.steps != steps)
      run.warnings.push_back(fmt::format("steps rounded up from {} to {}: strategy {} repeats itself every {} steps",
                                         steps, run.job.steps, strategy.id, plan.period));
  }

  assign_hosts(run, c, placed.places, hosts, addresses, facts.caps.own_threads);
  return run;
}

std::string lack_of_memory(std::uint64_t needed, const prepared_run& run, const host_group* hosts) {
  std::map<std::uint32_t, std::size_t> ranks; // by host
  for (const rank_plan& r : run.ranks) ++ranks[r.host];
  for (const auto& [host, count] : ranks) {
    const std::uint64_t share = needed / run.ranks.size() * count;
    const std::uint64_t there = hosts ? hosts->hosts()[host]->free_bytes : available_bytes();
    if (there && share > there)
      return fmt::format("needs about {} MiB of memory{}, and {} MiB are free", share >> 20,
                         hosts && ranks.size() > 1 ? " on host " + hosts->hosts()[host]->name : "", there >> 20);
  }
  return "";
}

prepared_run prepare_tuning(plugin_facts_cache& answers, const case_config& c) {
  prepared_run run = prepare(answers, baseline_of(c), "");
  run.job.batch = answers.of(c).model.batch_per_worker;
  run.job.row_major = answers.of(c).plan.flags & RG_PLAN_ROW_MAJOR;
  run.job.tune = true;
  run.ranks[0].role = "the process that times kernels";
  run.ranks[0].job = std::make_shared<const nlohmann::json>(to_json(run.job));
  return run;
}

case_config contention_of(const case_config& c) {
  case_config b = c;
  b.strategy = {"none", {}};
  b.transport = {"null", {}};
  b.data.evaluation_path.clear(); // this run measures no metric
  b.measure.evaluate_every = 0;
  b.cluster.straggler = {}; // this run measures the machine without stragglers
  b.cluster.hosts = 1;
  return b;
}

case_config baseline_of(const case_config& c) {
  case_config b = contention_of(c);
  b.cluster.workers = 1;
  return b;
}

std::vector<case_config> runs_of(const case_config& c) {
  std::vector<case_config> all = {c};
  if (!c.measure.baseline || is_baseline(c)) return all;
  all.push_back(baseline_of(c));
  if (has_control(c)) all.push_back(contention_of(c));
  return all;
}

bool has_control(const case_config& c) {
  return c.cluster.workers > 1 && c.strategy.id != "none";
}

bool is_baseline(const case_config& c) {
  return c.strategy.id == "none" && c.cluster.workers == 1;
}

std::string baseline_key(const case_config& c) {
  nlohmann::json j = to_json(baseline_of(c));
  j.erase("swept");
  j.erase("name");
  j["cluster"].erase("servers");
  j["cluster"].erase("colocate");
  return j.dump();
}

std::string kernels_key(const case_config& c, bool row_major) {
  const nlohmann::json j = to_json(c);
  const std::int64_t workers = c.train.scaling == "strong" ? c.cluster.workers : 1;
  return nlohmann::json{j.at("model"),      c.train.batch,     workers,        c.train.batch_unit,
                        c.train.accumulate, c.train.precision, c.train.device, c.train.executor,
                        c.cluster.threads,  row_major,         c.train.isa}
      .dump();
}

void set_timeout(launch_plan& plan, const std::string& timeout) {
  using namespace std::chrono;
  plan.limits.debugged = timeout == "none";
  plan.stall.watched = !plan.limits.debugged;
  if (const auto time = parse_nanoseconds(timeout)) plan.stall.same = duration_cast<milliseconds>(nanoseconds(*time));
}

void set_limits(launch_plan& plan, const case_config& c) {
  using namespace std::chrono;
  set_timeout(plan, c.measure.timeout);
  stall_limits& limits = plan.stall;
  // The source waits data.timeout for a batch and then fails with its own message; this limit must be longer.
  if (c.data.source == "stream")
    limits.rare = std::max(limits.rare, duration_cast<milliseconds>(2 * nanoseconds(c.data.timeout_ns)));
}

} // namespace regatta

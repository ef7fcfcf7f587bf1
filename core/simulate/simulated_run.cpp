// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulated_run.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "measure/rank_record.hpp"
#include "rank/model.hpp"
#include "results/case_entry.hpp"
#include "simulate/ask_model.hpp"
#include "simulate/departure.hpp"
#include "simulate/goal_file.hpp"
#include "simulate/run_recorders.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

using nlohmann::json;

constexpr double bytes_of_update = 5; // for each byte of a gradient: strategy_host reports so many of an update

std::int64_t elements_of(const simulated_tensor& t) {
  return std::accumulate(t.shape.begin(), t.shape.end(), std::int64_t{1}, std::multiplies<>());
}

double work_ns(const machine_file& m, const std::string& operation) {
  const auto found = m.work_of.find(operation);
  return found == m.work_of.end() ? m.work_ns_per_byte : found->second;
}

double update_ns(const machine_file& m, const std::vector<simulated_tensor>& tensors) {
  double bytes = 0;
  for (const simulated_tensor& t : tensors) bytes += static_cast<double>(elements_of(t)) * sizeof(float);
  return bytes * bytes_of_update * work_ns(m, "apply");
}

// Of the rows that a worker touches in a step: one that holds them reads them for the model, and updates them.
double rows_ns(const machine_file& m, const simulated_tables& tables, const case_config& c, double batch) {
  if (tables.all.empty()) return 0;
  const double read = tables.in_place ? 0 : 3 * work_ns(m, "rows_read");
  return row_bytes_of_step(m, tables, c, batch) * (read + bytes_of_update * work_ns(m, "rows_apply"));
}

std::uint64_t whole(double ns) {
  return static_cast<std::uint64_t>(std::max(0.0, std::round(ns)));
}

// Returns a number in (0, 1) that depends on the arguments alone (SplitMix64).
double uniform(std::uint64_t seed, std::uint64_t worker, std::uint64_t step, std::uint64_t which) {
  std::uint64_t x = seed;
  for (const std::uint64_t part : {worker, step, which}) {
    x += 0x9e3779b97f4a7c15 * (part + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
  }
  return (static_cast<double>(x >> 11) + 0.5) * 0x1p-53;
}

const message_costs& costs_of(const machine_file& m, const std::string& transport) {
  static const message_costs none;
  for (const std::string& id : {transport, std::string("default")})
    if (const auto found = m.transports.find(id); found != m.transports.end()) return found->second;
  return none;
}

std::uint32_t workers_on_host(const cluster_layout& layout, std::uint32_t worker) {
  return static_cast<std::uint32_t>(
      std::count(layout.host_of.begin(), layout.host_of.begin() + layout.workers, layout.host_of[worker]));
}

// The factors of a worker's computing: those of its host, and of a straggler.
double slowness_of(const run_to_simulate& r, std::uint32_t worker) {
  const straggler_config& slow = r.config->cluster.straggler;
  const double factor = slow.rank == worker ? std::max(slow.factor, 1.0) : 1;
  const cluster_layout& layout = r.run->job.layout;
  const double workers = workers_on_host(layout, worker);
  return factor * contention_of(*r.machine, workers) *
         load_factor(*r.machine, layout.host_of[worker], workers * static_cast<double>(r.config->cluster.threads));
}

// How many times longer the operations of ranks take than those of one rank alone: on each host all its servers work at
// once, or without servers all its workers, as the last of them have their gradients at about the same time. The value
// of the fullest host counts for all.
double operations_beside(const run_to_simulate& r) {
  const cluster_layout& layout = r.run->job.layout;
  std::map<std::uint32_t, double> at_once;
  for (std::uint32_t k = 0; k < layout.servers; ++k) at_once[layout.host_of[layout.server_rank[k]]] += 1;
  for (std::uint32_t w = 0; w < layout.workers && !layout.servers; ++w) at_once[layout.host_of[w]] += 1;
  double most = 1;
  for (const auto& [host, ranks] : at_once) most = std::max(most, ranks);
  return operation_contention_of(*r.machine, most);
}

// The link that the transport `shaped` gives each rank, in place of those of hosts.
std::optional<network_link> shaped_link(const component_choice& transport, double goodput) {
  if (transport.id != "shaped") return {};
  const double bytes_per_ns = transport.parameters.at("bandwidth").get<double>() / 8e9 * goodput;
  const auto ns = [&](const char* name) { return whole(transport.parameters.at(name).get<double>()); };
  return network_link{bytes_per_ns, bytes_per_ns, ns("latency"), ns("jitter")};
}

// Sets the links of hosts, which s.link_of numbers from 0 to below `links`, and of the switches between them.
void set_host_links(const machine_file::network& between, const message_costs& costs, std::uint32_t links,
                    network_options& n) {
  for (std::uint32_t number = 0; number < links; ++number) {
    const machine_file::host& h = host_of(between, number);
    const double rate = rate_of(between, h);
    n.links.push_back({rate, rate, whole(h.latency_ns + costs.latency_ns), whole(h.jitter_ns)});
  }
  for (const machine_file::tier& t : between.tiers) {
    switch_tier& tier = n.tiers.emplace_back();
    for (std::uint32_t number = 0; number < links; ++number)
      tier.group_of.push_back(number / static_cast<std::uint32_t>(t.hosts));
    tier.bytes_per_ns = between.bytes_per_ns * between.goodput * t.hosts / t.oversubscription;
  }
}

// The transport that has the costs of a message: `shaped` adds its link to those of another one; `auto` is shm on one
// host, and on several hosts the costs of tcp are those of all messages.
std::string carrier_of(const case_config& c) {
  const std::string& id = c.transport.id;
  const std::string carrier = id == "shaped" ? c.transport.parameters.at("over").get<std::string>() : id;
  return carrier != "auto" ? carrier : c.cluster.hosts > 1 ? "tcp" : "shm";
}

// How many times as long an update takes as that of a worker alone, because its gradients have been received.
double apply_in_training(const run_to_simulate& r) {
  return r.run->communicates ? costs_of(*r.machine, carrier_of(*r.config)).apply_in_training : 1;
}

void set_links(const run_to_simulate& r, simulation_setup& s) {
  const std::string carrier = carrier_of(*r.config);
  const message_costs& costs = costs_of(*r.machine, carrier);
  const cluster_layout& layout = r.run->job.layout;
  network_options& n = s.network;
  n.order = link_order::shared;
  n.urgent_lanes_first = carrier != "tcp" || r.config->transport.id == "shaped";
  const bool several_hosts = *std::ranges::max_element(layout.host_of) > 0;
  const message_work& work = several_hosts && costs.between_hosts ? *costs.between_hosts : costs;
  n.overhead_ns = whole(work.overhead_ns);
  n.overhead_ns_per_byte = work.overhead_ns_per_byte;
  if (std::isfinite(work.large_from)) n.large_from = whole(work.large_from);
  n.large_factor = work.large_factor;
  n.send_share = costs.send_share;
  n.add_ns_per_byte = costs.add_ns_per_byte;
  n.gap_ns = whole(costs.gap_ns);
  n.seed = r.seed;
  // Of native collectives, which take the time of a ring of messages: those of a host's ranks, or of the slowest link.
  const double per_byte = 2 * work.overhead_ns_per_byte + costs.add_ns_per_byte;
  n.latency_ns = whole(costs.latency_ns + 2 * work.overhead_ns);
  n.bytes_per_ns = 1 / (per_byte + 1 / costs.bytes_per_ns);
  n.inside = {costs.bytes_per_ns, costs.bytes_per_ns, whole(costs.latency_ns)};
  const machine_file::network& between = r.machine->between;
  if (const auto shaped = shaped_link(r.config->transport, between.goodput)) {
    n.links.assign(layout.size(), *shaped);
    for (network_link& link : n.links) link.latency_ns += whole(costs.latency_ns);
    s.link_of.resize(layout.size());
    std::iota(s.link_of.begin(), s.link_of.end(), 0u);
    return;
  }
  s.link_of = layout.host_of;
  std::uint32_t links = *std::ranges::max_element(layout.host_of) + 1;
  if (between.own_servers && links > 1)
    for (std::uint32_t k = 0; k < layout.servers; ++k)
      if (layout.server_rank[k] >= layout.workers) s.link_of[layout.server_rank[k]] = links++;
  set_host_links(between, costs, links, n);
  if (links == 1) return;
  for (const network_link& l : n.links) {
    n.latency_ns = std::max(n.latency_ns, l.latency_ns + 2 * n.overhead_ns);
    n.bytes_per_ns = std::min(n.bytes_per_ns, 1 / std::max(per_byte, 1 / l.out_bytes_per_ns));
  }
}

// Sets which ranks share cores: those of a host, or of all hosts. A rank has its own if they suffice, and the launcher
// binds it to as many as it has threads, or it does not compute on them.
void set_cores(const run_to_simulate& r, simulation_setup& s) {
  const auto& loss = costs_of(*r.machine, carrier_of(*r.config)).computing_loss;
  const bool on_cores = r.machine->on_cores;
  if (!(r.machine->cores > 0) || (on_cores && !loss) || !r.run->communicates) return;
  if (!on_cores && r.config->train.device != "cpu") return; // a strategy's operations run on the device
  const bool shaped = r.config->transport.id == "shaped";   // its links are those of ranks
  std::vector<std::uint32_t> host_of = shaped ? r.run->job.layout.host_of : s.link_of;
  if (r.machine->between.shared_cores && !on_cores) std::ranges::fill(host_of, 0u);
  const double threads = on_cores ? static_cast<double>(r.config->cluster.threads) : 0;
  std::map<std::uint32_t, double> ranks;
  for (const std::uint32_t host : host_of) ranks[host] += 1;
  std::map<std::uint32_t, std::uint32_t> shared; // group by host
  s.cores.loss = loss.value_or(1);
  for (const std::uint32_t host : host_of) {
    const bool suffice = ranks.at(host) * std::max(threads, 1.0) <= r.machine->cores;
    const bool own = suffice && (r.config->cluster.pin || !on_cores);
    const auto next = static_cast<std::uint32_t>(s.cores.groups.size());
    const std::uint32_t group = own ? next : shared.emplace(host, next).first->second;
    if (group == next) s.cores.groups.push_back({own && on_cores ? threads : r.machine->cores, threads});
    s.cores.group_of.push_back(group);
  }
}

// Returns the most that a worker updates after its backward pass: everything without communication; of its buckets the
// last, which waits for the last gradients, where workers update; nothing where servers do.
std::int64_t update_at_end(const run_to_simulate& r) {
  if (!r.run->communicates) return std::numeric_limits<std::int64_t>::max();
  if (r.run->job.layout.servers) return 0;
  const double alone = update_ns(*r.machine, *r.tensors) * apply_in_training(r) +
                       rows_ns(*r.machine, *r.tables, *r.config, static_cast<double>(r.facts->model.batch_per_worker));
  const double all = alone * operations_beside(r);
  const auto bucket = r.config->strategy.parameters.find("bucket");
  if (bucket == r.config->strategy.parameters.end() || !bucket->second.is_number()) return std::llround(all);
  const auto bytes = static_cast<double>(r.facts->model.weight_bytes);
  return std::llround(all * std::min(1.0, bucket->second.get<double>() / std::max(bytes, 1.0)));
}

// Fills the times of a worker's steps that a real rank would have measured; `own_update` is update_at_end().
void add_steps(const run_to_simulate& r, const simulation_setup& s, const std::vector<simulated_step>& steps,
               std::uint32_t worker, std::int64_t own_update, rank_record& record) {
  const std::uint64_t warmup = r.run->job.warmup;
  compute_times computing{0, std::vector<std::uint64_t>(s.tensors.size()),
                          std::vector<std::uint64_t>(s.tensors.size())};
  for (std::uint64_t n = 0; n < steps.size(); ++n) {
    const simulated_step& x = steps[n];
    if (n < warmup) {
      record.warm_up_ns.push_back(static_cast<double>(x.end - x.begin));
      continue;
    }
    s.compute(worker, n, computing);
    const auto sum = [](const std::vector<std::uint64_t>& v) {
      return static_cast<std::int64_t>(std::accumulate(v.begin(), v.end(), std::uint64_t{0}));
    };
    step_time t;
    t.begin = static_cast<std::int64_t>(x.begin);
    t.end = static_cast<std::int64_t>(x.end);
    t.compute_end = static_cast<std::int64_t>(x.computed);
    t.input = std::min<std::int64_t>(static_cast<std::int64_t>(whole(r.machine->input_ns)),
                                     static_cast<std::int64_t>(computing.before));
    const auto lost = [&](std::size_t part) { return static_cast<std::int64_t>(x.lost.at(part)); };
    t.forward = sum(computing.forward) + lost(1);
    t.backward = sum(computing.backward) + static_cast<std::int64_t>(computing.after) + lost(2);
    t.stalled_at = static_cast<std::int64_t>(x.forward);
    t.stalled = static_cast<std::int64_t>(x.backward - x.forward) - t.forward;
    t.update = std::min(own_update, t.end - t.compute_end);
    t.blocked = t.stalled + (t.end - t.compute_end) - t.update +
                static_cast<std::int64_t>(x.forward - x.begin - computing.before) - lost(0);
    t.input += lost(0);
    record.steps.push_back(t);
  }
  record.region_begin = record.steps.front().begin;
  record.region_end = record.steps.back().end;
  record.samples = record.steps.size() * r.run->job.batch;
}

// Returns the most ranks behind other links with which one rank exchanges messages: as many flows meet at its port.
// Folded ranks are like one that is simulated.
std::size_t most_flows(const simulation_result& all, const std::vector<std::uint32_t>& link_of) {
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < all.counted.size(); ++rank) {
    std::set<std::uint32_t> peers;
    for (const auto& [peer_and_lane, sent] : all.counted[rank].sent_to)
      if (link_of.at(peer_and_lane.first) != link_of.at(rank)) peers.insert(peer_and_lane.first);
    most = std::max(most, peers.size());
  }
  return most;
}

} // namespace

std::vector<simulated_tensor> tensors_of(const registry& plugins, const case_config& c) {
  const json described = ask_model(plugins, c, [](const model_instance& model) {
    json all = json::array();
    for (const rg_tensor& t : model.tensors())
      if (t.kind == RG_TENSOR_DENSE)
        all.push_back({{"name", t.name},
                       {"shape", std::vector<std::int64_t>(t.shape, t.shape + t.ndim)},
                       {"compressible", t.compressible != 0}});
    return all;
  });
  std::vector<simulated_tensor> tensors;
  for (const json& t : described)
    tensors.push_back({t.at("name"), t.at("shape").get<std::vector<std::int64_t>>(), t.at("compressible")});
  return tensors;
}

compute_times base_times(const machine_file& m, const std::vector<simulated_tensor>& tensors, const case_config& c,
                         const model_facts& facts, const simulated_tables& tables) {
  const std::size_t n = tensors.size();
  const auto batch = static_cast<double>(facts.batch_per_worker);
  compute_times out{whole(m.input_ns + m.other_ns), std::vector<std::uint64_t>(n), std::vector<std::uint64_t>(n)};
  if (!m.model.empty() && m.model != c.model.id)
    throw failure(exit_code::usage,
                  fmt::format("model.plugin: expected {}, of which the machine file is, got {}", m.model, c.model.id));
  if (!m.tensors.empty() || m.after_ns > 0) {
    out.after = whole(m.after_ns * batch / m.batch);
    for (std::size_t t = 0; t < std::max(n, m.tensors.size()); ++t) {
      const std::string expected = t < m.tensors.size() ? m.tensors[t].name : "none";
      const std::string is = t < n ? tensors[t].name : "none";
      if (expected != is)
        throw failure(
            exit_code::usage,
            fmt::format("model.plugin: expected the model that the machine file is of, whose tensor {} is {}, "
                        "got one with {}: calibrate this model",
                        t + 1, expected, is));
      out.forward[t] = whole(m.tensors[t].forward * batch / m.batch);
      out.backward[t] = whole(m.tensors[t].backward * batch / m.batch);
    }
  } else {
    double step = 0;
    if (m.operations > 0) {
      if (!(facts.flops_per_sample > 0))
        throw failure(exit_code::usage, fmt::format("model.plugin: the operations of {} are unknown, and the machine "
                                                    "file has only their rate: give it samples_per_second",
                                                    c.model.id));
      step = 1e9 * batch * facts.flops_per_sample / m.operations;
    } else {
      step = std::max(0.0, step_ns_of(m, batch) - m.input_ns - m.other_ns - update_ns(m, tensors) -
                               rows_ns(m, tables, c, batch));
    }
    if (n == 0) out.after = whole(step);
    double all = 0;
    for (const simulated_tensor& t : tensors) all += m.by_bytes ? static_cast<double>(elements_of(t)) : 1;
    for (std::size_t t = 0; t < n; ++t) {
      const double share = (m.by_bytes ? static_cast<double>(elements_of(tensors[t])) : 1) / all;
      out.forward[t] = whole(step * m.forward_share * share);
      out.backward[t] = whole(step * (1 - m.forward_share) * share);
    }
  }
  // Weights are needed in the first micro-batch, gradients are ready in the last: those between are one long pass.
  if (const auto micros = static_cast<std::uint64_t>(c.train.accumulate); micros > 1 && n > 0) {
    std::uint64_t before = 0, after = 0;
    for (std::uint64_t& ns : out.forward) before += ns - ns / micros, ns /= micros;
    for (std::uint64_t& ns : out.backward) after += ns - ns / micros, ns /= micros;
    out.backward[0] += before + after;
  }
  return out;
}

simulation_setup setup_of(const run_to_simulate& r) {
  const case_config& c = *r.config;
  const machine_file& m = *r.machine;
  const rank_job& job = r.run->job;
  simulation_setup s;
  s.strategy = c.strategy.id;
  s.parameters = c.strategy.parameters;
  s.workers = job.layout.workers;
  s.servers = job.layout.servers;
  s.colocate = job.layout.servers && c.cluster.colocate;
  s.hosts = static_cast<std::uint32_t>(c.cluster.hosts);
  s.steps = job.warmup + job.steps;
  s.optimizer = job.optimizer();
  s.ghosts = !(r.facts->plan.flags & RG_PLAN_BYTES);
  s.on_host = c.train.device == "cpu";
  s.tensors.clear();
  for (const simulated_tensor& t : *r.tensors) {
    s.tensors.push_back(elements_of(t));
    s.shapes.push_back(t.shape);
    s.compressible.push_back(t.compressible);
  }
  set_tables(m, *r.tables, c, r.facts->model.batch_per_worker, s);
  s.network.adds = r.facts->caps.flags & RG_CAP_ADD;
  s.network.collectives = r.facts->collectives;
  set_links(r, s);
  set_cores(r, s);
  const double beside = operations_beside(r);
  s.network.bf16_ns_per_byte = conversion_ns_per_byte(m, false) * beside;
  s.network.fp16_ns_per_byte = conversion_ns_per_byte(m, true) * beside;
  s.work.of_kind[virtual_work::fp16_conversion] = s.network.fp16_ns_per_byte;
  s.work.ns_per_byte = m.work_ns_per_byte * beside;
  for (const auto& [name, kind] : timed_operations())
    if (m.work_of.count(name)) {
      const double received = kind == RG_OP_APPLY ? apply_in_training(r) : 1;
      s.work.of_kind.emplace(kind, m.work_of.at(name) * beside * received);
    }
  s.work.in_turn = true;
  std::vector<double> slowness;
  std::map<double, std::uint32_t> kinds;
  for (std::uint32_t w = 0; w < s.workers; ++w) slowness.push_back(slowness_of(r, w));
  for (const double x : slowness) kinds.emplace(x, static_cast<std::uint32_t>(kinds.size()));
  for (const double x : slowness) s.compute_kinds.push_back(kinds.at(x));
  s.fold = m.variation > 0 ? folding::off : folding::on;
  s.compute = [base = base_times(m, *r.tensors, c, r.facts->model, *r.tables), slowness, &m,
               seed = r.seed](std::uint32_t worker, std::uint64_t step, compute_times& out) {
    const double factor =
        slowness[worker] * drawn_factor(m, uniform(seed, worker, step, 0), uniform(seed, worker, step, 1));
    out.before = base.before;
    out.after = whole(static_cast<double>(base.after) * factor);
    for (std::size_t t = 0; t < base.forward.size(); ++t) {
      out.forward[t] = whole(static_cast<double>(base.forward[t]) * factor);
      out.backward[t] = whole(static_cast<double>(base.backward[t]) * factor);
    }
  };
  return s;
}

namespace {

simulation_result simulate_and_write(const registry& loading, const run_to_simulate& r, simulation_setup setup,
                                     std::set<std::string>& warnings) {
  std::optional<run_recorders> recorders;
  if (!r.trace.empty()) setup.trace = recorders.emplace(r).steps();
  simulation_result all = r.goal.empty() ? simulate(loading, setup) : simulate_to_goal(loading, setup, r.goal);
  if (recorders)
    for (std::string& text : recorders->write()) warnings.insert(std::move(text));
  return all;
}

} // namespace

json simulate_run(const registry& loading, const run_to_simulate& r) {
  const cluster_layout& layout = r.run->job.layout;
  simulation_setup setup = setup_of(r);
  std::set<std::string> warned; // by strategies: all ranks say the same
  setup.log = [&](int level, const std::string& text) {
    if (level <= RG_LOG_WARNING) warned.insert(text);
  };
  simulation_result all = simulate_and_write(loading, r, setup, warned);
  const std::optional<departure> leaves = departure_of(r, setup, all);
  if (leaves) {
    setup.stays = leaves->steps;
    setup.leavers = leaves->ranks;
    all = simulate_and_write(loading, r, setup, warned);
    warned.insert(leaves->text);
  }
  if (const std::size_t flows = most_flows(all, setup.link_of); carrier_of(*r.config) == "tcp" && flows >= 16)
    warned.insert(
        fmt::format("incast is not modelled: {} flows meet at a port, and TCP may lose packets there", flows));
  if (all.whole.starts_with("the folded simulation failed"))
    warned.insert(
        fmt::format("all ranks are simulated, though strategy {} declares a symmetry: {}", setup.strategy, all.whole));
  if (std::ranges::any_of(all.counted, [](const auto& rank) { return rank.collective_bytes > 0; }))
    warned.insert(fmt::format("the own collectives of transport {} are simulated as rings of messages: how they really "
                              "work, and how long they take, is not modelled",
                              r.config->transport.id));
  // The bytes of the timed region are those that a run without it does not send.
  std::vector<virtual_network::counts> before(layout.size());
  if (r.run->job.warmup) {
    simulation_setup warm_up = setup;
    warm_up.steps = r.run->job.warmup;
    if (warm_up.stays >= warm_up.steps) warm_up.stays = 0;
    before = simulate(loading, warm_up).counted;
  }
  const std::int64_t own_update = update_at_end(r);
  json ranks = json::array();
  for (std::uint32_t rank = 0; rank < layout.size(); ++rank) {
    if (leaves && std::ranges::find(leaves->ranks, rank) != leaves->ranks.end()) continue;
    const rg_cluster view = layout.view(rank);
    rank_record record;
    record.rank = static_cast<std::int32_t>(rank);
    record.worker = view.worker;
    record.server = view.server;
    record.host = fmt::format("host{}", layout.host_of[rank]);
    record.role = r.run->ranks.at(rank).role;
    record.first_step = r.run->job.warmup;
    if (r.run->synchronous || !r.run->communicates) record.bound = 0;
    record.bytes_sent = all.counted[rank].bytes_sent - before[rank].bytes_sent;
    record.bytes_received = all.counted[rank].bytes_received - before[rank].bytes_received;
    record.given_bytes = record.bytes_sent;
    record.strategy = all.records[rank];
    if (ranks.empty()) record.warnings.assign(warned.begin(), warned.end());
    if (view.worker >= 0) {
      const auto worker = static_cast<std::uint32_t>(view.worker);
      add_steps(r, setup, all.steps.at(worker), worker, own_update, record);
      record.drain_ns = static_cast<std::int64_t>(all.virtual_ns) - record.region_end;
    }
    ranks.push_back(to_json(record));
  }
  return ranks;
}

bool varies(const machine_file& m, const case_config& c) {
  const auto shakes = [](const machine_file::host& h) { return h.jitter_ns > 0; };
  if (m.variation > 0) return true;
  if (c.transport.id == "shaped") return c.transport.parameters.at("jitter").get<double>() > 0;
  return shakes(m.between) ||
         std::ranges::any_of(m.between.single, [&](const auto& one) { return shakes(one.second); });
}

std::vector<std::string> not_modelled(const run_to_simulate& r) {
  std::vector<std::string> texts;
  const cluster_layout& layout = r.run->job.layout;
  if (r.run->communicates && r.facts->model.sums_over_workers)
    texts.push_back("sums over workers within a step (step collectives), as of synchronised batch norm, are not "
                    "modelled: they take no time and send no bytes");
  if (!r.machine->fingerprint.empty() &&
      r.machine->fingerprint != fingerprint(*r.config, {}, {}).at("model").get<std::string>())
    texts.push_back("the machine file has computing times of the model with other parameters: its fingerprint of the "
                    "model is not that of this case");
  if (const std::string carrier = carrier_of(*r.config);
      r.run->communicates && !r.machine->transports.count(carrier) && !r.machine->transports.count("default"))
    texts.push_back(fmt::format("the machine file has no [transport.{}]: a message costs no processor time", carrier));
  else if (r.run->communicates && r.machine->on_cores && r.machine->cores > 0 &&
           !costs_of(*r.machine, carrier).computing_loss)
    texts.push_back(fmt::format("the machine file has no computing_loss in [transport.{}]: computing is as fast beside "
                                "messages as without them",
                                carrier));
  for (const simulated_table& t : r.tables->all)
    if (draws_of(*r.machine, t, *r.config).assumed)
      texts.push_back(fmt::format("the machine file has no [[compute.table]] of {}: the rows that a step touches are "
                                  "drawn from Zipf's law with exponent 1",
                                  t.name));
  const auto on_host = static_cast<double>(workers_on_host(layout, 0));
  const double measured = r.machine->contention.empty() ? 1 : r.machine->contention.back().first;
  if (on_host > measured && r.machine->on_cores && r.machine->cores > 0)
    texts.push_back(fmt::format("{} workers on a host: how much they slow each other down was measured up to {}",
                                on_host, measured));
  return texts;
}

} // namespace regatta

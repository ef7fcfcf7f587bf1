// SPDX-License-Identifier: Apache-2.0
#include "cli/estimate.hpp"

#include "base/failure.hpp"
#include "launch/cpus.hpp"
#include "machine/speed.hpp"
#include "results/sampling.hpp"
#include "simulate/weights.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <regatta/clock.hpp>

namespace regatta {
namespace {

// ------------------------------------------------------------------------------------------------ the constants ---
//
// These figures were fitted to examples/ (docs/experiments.md, "Dry run"). They describe how well the engine and the
// executors use a machine; the machine itself is measured.

constexpr double efficiency = 0.75;              // of the GEMMs of a step, as a fraction of measure_flops()
constexpr double gpu_flops = 15e12;              // in fp32; an assumption: before a run the GPU is not used
constexpr double gpu_short_flops = 150e12;       // in bf16 and fp16; an assumption too
constexpr double timing_steps = 10;              // timing all kernels takes as long as the GEMMs of this many steps
constexpr double process_seconds = 0.1;          // CPU time of a process from exec to the first step, and for its end
constexpr double parameter_seconds = 12e-9;      // to initialise one parameter
constexpr double producer_seconds = 0.7;         // until a data.producer has sent the first batches
constexpr double pair_seconds = 0.5e-3;          // to connect two ranks, CPU time of both together
constexpr double step_seconds = 100e-6;          // of the engine, for each step
constexpr double peer_seconds = 40e-6;           // for each step and each rank that a rank talks to
constexpr double compress_seconds = 4e-9;        // to select gradients, for each parameter
constexpr double passes_shm = 3, passes_tcp = 8; // passes over memory for each byte that is sent

double in_flight(double a, double b) { // computing and exchange overlap, except in the forward pass (about 1/3)
  return std::max(a, b) + std::min(a, b) / 3;
}

// ----------------------------------------------------------------------------------------------------- the work ---

double rate_of(const case_config& c, const machine_speed& machine) {
  if (c.train.device == "cpu") return machine.flops * efficiency;
  return efficiency * (c.train.precision == "fp32" ? gpu_flops : gpu_short_flops);
}

// Returns the CPU time of one worker's GEMMs in a step. On a GPU it is time of the device, while the CPU mostly waits.
double compute_of(const case_config& c, const plugin_facts& facts, const machine_speed& machine) {
  return static_cast<double>(facts.model.batch_per_worker) * facts.model.flops_per_sample / rate_of(c, machine);
}

// Returns how often an update passes over the bytes of the weights.
double passes_of(const optimizer_config& o) {
  return o.plugin == "sgd" ? 3 : o.plugin == "adam" ? 7 : 5;
}

// Returns the value of a parameter in the file, else its default; nullopt if the plugin has no parameter of this name.
std::optional<nlohmann::json> parameter(const component& p, const component_choice& choice, const char* name) {
  const auto given = choice.parameters.find(name);
  if (given != choice.parameters.end()) return given->second;
  for (const rg_param& one : p.parameters)
    if (std::string_view(one.name) == name && one.default_value)
      return nlohmann::json::parse(one.default_value, nullptr, false);
  return {};
}

// Returns the bytes of dense gradients that are sent for each byte of weights. Parameters of a strategy tell whether it
// compresses. A list of sparsities ends with that of the timed steps; a ramp-up before them sends more.
double density_of(const component& strategy, const component_choice& choice) {
  double density = 1;
  if (const auto s = parameter(strategy, choice, "sparsity");
      s && s->is_array() && !s->empty() && s->back().is_number())
    density = std::clamp(2 * (1 - s->back().get<double>()), 0.0, 1.0); // a value and its index
  if (const auto wire = parameter(strategy, choice, "wire"); wire && (*wire == "fp16" || *wire == "bf16")) density /= 2;
  return density;
}

struct traffic {
  double worker = 0, server = 0; // bytes that a worker or a server sends in a step; it receives as many
};

traffic traffic_of(const case_config& c, const plugin_facts& facts, const cluster_layout& layout,
                   const component& strategy) {
  if (!facts.communicates || layout.workers < 2) return {};
  const double n = layout.workers, period = static_cast<double>(facts.plan.period);
  const double dense = static_cast<double>(facts.model.weight_bytes) * density_of(strategy, c.strategy) / period;
  const double rows = static_cast<double>(facts.model.step_row_bytes) / period;
  traffic t;
  t.worker = layout.servers ? dense + rows : 2 * (n - 1) / n * dense + (n - 1) * rows;
  if (layout.servers) t.server = t.worker * n / layout.servers;
  return t;
}

// Returns the seconds that bytes and messages of a step take, if parameters of the transport limit its rate or latency.
double wire_of(const component& transport, const component_choice& choice, const traffic& t, double rounds) {
  double seconds = 0;
  for (const rg_param& p : transport.parameters) {
    const auto value = parameter(transport, choice, p.name);
    if (!value || !value->is_number()) continue;
    const double v = value->get<double>();
    if (p.unit == RG_UNIT_BITS_PER_SECOND && v > 0) seconds += std::max(t.worker, t.server) * 8 / v;
    if (p.unit == RG_UNIT_NANOSECONDS && std::string_view(p.name) == "latency") seconds += rounds * v * 1e-9;
  }
  return seconds;
}

// ----------------------------------------------------------------------------------------------------- the data ---

struct format_cost {
  double sample_bytes; // on disk
  double open, read;   // CPU seconds: for each byte when a file is opened, for each sample when it is read
};

const std::map<std::string, format_cost> formats = {
    {"cifar10", {3073, 1e-11, 5e-6}},  {"imagenet", {60e3, 1e-12, 8e-3}}, {"npy", {4096, 1e-11, 1e-6}},
    {"criteo", {260, 3e-9, 3e-6}},     {"queries", {82, 10e-9, 2e-6}},    {"words", {1.2, 60e-9, 0.3e-6}},
    {"sentences", {150, 60e-9, 5e-6}}, {"parallel", {80, 60e-9, 5e-6}}};

// Returns the size of a file, or of all files below a folder. Returns 0 if it cannot be read: the run reports that
// error.
double bytes_below(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ec;
  if (path.empty()) return 0;
  if (fs::is_regular_file(path, ec)) return static_cast<double>(fs::file_size(path, ec));
  double sum = 0;
  fs::recursive_directory_iterator it(path, ec), end;
  for (; !ec && it != end; it.increment(ec))
    if (it->is_regular_file(ec)) sum += static_cast<double>(it->file_size(ec));
  return sum;
}

struct data_cost {
  double open = 0;      // CPU seconds of a worker before its first step
  double sample = 0;    // CPU seconds for each sample
  double evaluated = 0; // samples of one evaluation, all workers together
  double producer = 0;  // CPU seconds and elapsed seconds of data.producer before the first step
};

data_cost data_of(const case_config& c) {
  const data_config& d = c.data;
  const auto format = formats.find(d.format);
  if (!d.producer.empty()) return {.producer = producer_seconds};
  if (d.sample_source() != "dataset" || format == formats.end()) return {};
  const format_cost& f = format->second;
  data_cost cost;
  const double evaluation = bytes_below(d.evaluation_path);
  cost.open = f.open * (bytes_below(d.path) + evaluation);
  cost.sample = f.read;
  cost.evaluated = evaluation / f.sample_bytes;
  return cost;
}

} // namespace

// ------------------------------------------------------------------------------------------------------ one run ---

step_estimate estimate_step(const case_config& c, const plugin_facts& facts, const prepared_run& run,
                            const registry& plugins, const machine_speed& machine) {
  const cluster_layout& layout = run.job.layout;
  const component& strategy = plugins.described(kind::strategy, c.strategy.id);
  const component& transport = plugins.described(kind::transport, c.transport.id);
  const double workers = layout.workers, servers = layout.servers;
  const double threads = static_cast<double>(c.cluster.threads);
  const bool on_cpu = c.train.device == "cpu";

  const double compute = compute_of(c, facts, machine);
  const data_cost data = data_of(c);
  const double batch = static_cast<double>(facts.model.batch_per_worker);
  // Each server, if there are any, updates its share of the weights, else each worker all of them.
  const double update =
      static_cast<double>(facts.model.weight_bytes) * passes_of(c.optimizer) / machine.bytes / std::max(servers, 1.0);
  const traffic t = traffic_of(c, facts, layout, strategy);
  const double passes = (transport.id == "shm" ? passes_shm : passes_tcp) / machine.bytes;
  const double peers = facts.communicates ? (servers > 0 ? servers : std::min(workers - 1, 4.0)) : 0;
  const double compress = facts.communicates && density_of(strategy, c.strategy) < 0.5 // not only by a shorter type
                              ? compress_seconds * static_cast<double>(facts.model.weight_bytes) / sizeof(float)
                              : 0;
  const double engine = step_seconds + peer_seconds * peers + compress;

  // One step: CPU time of a worker and of a server, and the elapsed time if all ranks share the cores.
  const double worker =
      (on_cpu ? compute : 0) + batch * data.sample + (servers > 0 ? 0 : update) + 2 * t.worker * passes + engine;
  const double server = update + 2 * t.server * passes + step_seconds + peer_seconds * workers;
  const double cpu = workers * worker + servers * server;
  const double alone = (on_cpu ? (compute + batch * data.sample) / threads : compute) * c.cluster.straggler.factor +
                       (servers > 0 ? 0 : update) + 2 * t.worker * passes + engine;
  const double busy = std::max(alone, cpu / machine.cores);
  const double rounds = servers > 0 ? 2 : 2 * (workers - 1);
  return {in_flight(busy, wire_of(transport, c.transport, t, facts.communicates ? rounds : 0)), cpu};
}

time_estimate estimate_run(const case_config& c, const plugin_facts& facts, const prepared_run& run,
                           const step_estimate& of_step, const machine_speed& machine) {
  const cluster_layout& layout = run.job.layout;
  const double workers = layout.workers, servers = layout.servers, ranks = layout.size(), step = of_step.seconds;
  const double threads = static_cast<double>(c.cluster.threads);
  const data_cost data = data_of(c);
  const double pairs = facts.communicates ? (servers > 0 ? workers * servers : workers * (workers - 1) / 2) : 0;
  const double start =
      process_seconds + parameter_seconds * static_cast<double>(facts.model.parameters - facts.model.table_parameters);
  const double starts = ranks * start + workers * data.open + pairs * pair_seconds * facts.plan.lanes / 4;
  const double evaluations =
      data.evaluated > 0 ? 1 + (c.measure.evaluate_every > 0
                                    ? static_cast<double>(run.job.steps) / static_cast<double>(c.measure.evaluate_every)
                                    : 0)
                         : 0;
  const double evaluation =
      evaluations * data.evaluated * (facts.model.flops_per_sample / 3 / rate_of(c, machine) + data.sample);
  const double all_at_once = std::min(ranks, machine.cores),
               workers_at_once = std::min(workers * threads, machine.cores);
  const double steps = static_cast<double>(run.job.warmup + run.job.steps);

  time_estimate out;
  const double timed =
      c.measure.seconds > 0 ? c.measure.seconds + static_cast<double>(run.job.warmup) * step : steps * step;
  out.seconds = start + data.open + data.producer +
                std::max(0.0, starts - all_at_once * (start + data.open)) / machine.cores + timed +
                evaluation / workers_at_once;
  out.cpu_seconds = starts + data.producer + (step > 0 ? timed / step : 0) * of_step.cpu_seconds + evaluation;
  return out;
}

time_estimate estimate_timing(const case_config& c, const plugin_facts& facts, const machine_speed& machine) {
  const double start =
      process_seconds + parameter_seconds * static_cast<double>(facts.model.parameters - facts.model.table_parameters);
  const double seconds = start + timing_steps * compute_of(c, facts, machine);
  return {seconds, seconds};
}

// ------------------------------------------------------------------------------------------------ the campaign ---

std::uint64_t fewest_repeats(const measure_config& m) {
  return m.precision > 0 ? fewest_rounds : static_cast<std::uint64_t>(m.repeats);
}

campaign_estimate estimate(plugin_facts_cache& answers, const experiment& e, const machine_speed& machine,
                           const machine_file* simulated) {
  std::vector<case_config> asked;
  for (const case_config& c : e.cases)
    for (case_config& run : runs_of(c)) asked.push_back(std::move(run));
  answers.collect(asked);

  campaign_estimate out;
  std::map<std::string, std::size_t> known; // index in out.shared, by the key of the shared run
  const auto share = [&](std::size_t index, const std::string& key, const std::string& what, const case_config& c,
                         std::uint64_t runs, const auto& once) {
    const auto [at, is_new] = known.emplace(what + key, out.shared.size());
    if (is_new) out.shared.push_back({what, c.cluster.workers, 0, {}, {}});
    shared_estimate& s = out.shared[at->second];
    s.cases.push_back(index);
    if (runs <= s.runs) return;
    s.runs = runs;
    const time_estimate one = once();
    s.time = {one.seconds * static_cast<double>(runs), one.cpu_seconds * static_cast<double>(runs)};
  };
  described_models models(answers);
  const auto step_of = [&](const case_config& c, const plugin_facts& facts, const prepared_run& run) -> step_estimate {
    if (!simulated) return estimate_step(c, facts, run, answers.plugins(), machine);
    const described_weights& weights = models.of(c);
    return {simulated_step_seconds(answers.plugins(),
                                   {&c, &run, &facts, simulated, &weights.dense, c.seed, &weights.tables}),
            std::numeric_limits<double>::quiet_NaN()};
  };
  const auto one_run = [&](const case_config& c) {
    const prepared_run run = prepare(answers, c, "");
    return estimate_run(c, answers.of(c), run, step_of(c, answers.of(c), run), machine);
  };
  for (std::size_t i = 0; i < e.cases.size(); ++i) {
    const case_config& c = e.cases[i];
    case_estimate& entry = out.cases.emplace_back();
    try {
      const plugin_facts& facts = answers.of(c);
      const prepared_run run = prepare(answers, c, "");
      check_tables(c, facts.model, run.exchanges_rows);
      const std::uint64_t repeats = fewest_repeats(c.measure);
      const time_estimate once = estimate_run(c, facts, run, step_of(c, facts, run), machine);
      entry.ranks = run.ranks.size();
      entry.flops_known = simulated || facts.model.flops_per_sample > 0;
      entry.time = {once.seconds * static_cast<double>(repeats), once.cpu_seconds * static_cast<double>(repeats)};
      entry.memory = estimated_bytes(c, facts.model, run.job.layout.servers);
      if (!lack_of_memory(entry.memory, run, answers.hosts).empty())
        throw failure(exit_code::usage, "more memory than is free");
      if (c.measure.baseline && !is_baseline(c)) {
        const std::string group = baseline_key(c);
        // The baseline runs twice in each round.
        share(i, group, "baseline", baseline_of(c), 2 * repeats, [&] { return one_run(baseline_of(c)); });
        if (has_control(c))
          share(i, fmt::format("{} {}", group, c.cluster.workers), "control", contention_of(c), repeats,
                [&] { return one_run(contention_of(c)); });
      }
      const bool graph = answers.plugins().described(kind::model, c.model.id).is_graph;
      if (c.train.kernels == "timed" && graph)
        share(i, kernels_key(c, facts.plan.flags & RG_PLAN_ROW_MAJOR), "kernel timing", baseline_of(c), 1,
              [&] { return estimate_timing(c, facts, machine); });
      out.total += entry.time;
    } catch (const failure& f) {
      entry.refused = c.written.reason_of(f);
      entry.code = static_cast<int>(f.code());
    }
  }
  for (const shared_estimate& s : out.shared) out.total += s.time;
  return out;
}

// ------------------------------------------------------------------------------------------------- the machine ---

machine_speed measure_machine() {
  return {measure_flops(), measure_copy_rate(),
          static_cast<double>(std::max<std::size_t>(assign_cpus(this_hosts_cpus(), 1, 1, false).available, 1))};
}

} // namespace regatta

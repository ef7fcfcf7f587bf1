// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate.hpp"

#include "base/failure.hpp"
#include "campaign/campaign.hpp"
#include "campaign/plugin_files.hpp"
#include "campaign/prepare.hpp"
#include "cli/comm.hpp"
#include "cli/data.hpp"
#include "cli/machine.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/run_screen.hpp"
#include "cli/standard_output.hpp"
#include "files/write_atomically.hpp"
#include "launch/cpus.hpp"
#include "measure/rank_record.hpp"
#include "network/interfaces.hpp"
#include "results/campaign_records.hpp"
#include "results/case_entry.hpp"
#include "results/statistics.hpp"
#include "simulate/campaign.hpp"
#include "simulate/fit.hpp"
#include "simulate/measured_network.hpp"
#include "simulate/measured_operations.hpp"
#include "simulate/simulated_run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <regatta/clock.hpp>
#include <unistd.h>

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::int64_t traced_steps = 20;
constexpr int rounds = 3; // of measurements that are compared with each other: this machine may change

// The measurements of one run of a case on this machine.
struct measured_run {
  std::vector<rank_record> ranks;
  std::vector<rank_trace> traces;
};

// Runs the first case of an experiment once.
measured_run run_once(plugin_facts_cache& answers, const experiment& e, run_screen& screen) {
  measured_run out;
  plugin_files files(answers.plugins());
  campaign_records records(e);
  records.add(campaign_record(json::object())); // a campaign looks there for its data
  std::string why;
  campaign_hooks hooks;
  hooks.progress = [&](const progress& p) { screen.show(p); };
  hooks.take_traces = [&](std::vector<json>& ranks, const std::vector<json>&) {
    for (json& rank : ranks)
      if (const auto trace = rank.find("trace"); trace != rank.end()) {
        out.traces.push_back(rank_trace_from(*trace));
        rank.erase(trace);
      }
  };
  hooks.record = [&](const json& record) {
    if (record.at("kind") == "run")
      for (const json& rank : record.at("ranks")) out.ranks.push_back(record_from_json(rank));
    if (record.at("kind") == "failure") why = record.at("error");
  };
  campaign one(answers, e, files, records, std::move(hooks));
  if (!one.run()) throw failure(exit_code::interrupted, "interrupted");
  if (!why.empty()) throw failure(static_cast<exit_code>(one.worst_exit_code()), why);
  return out;
}

experiment only(const experiment& e, case_config c, std::int64_t trace) {
  experiment one = e;
  c.measure.repeats = 1;
  c.measure.precision = 0;
  c.measure.baseline = false;
  c.measure.trace = trace;
  c.swept.clear();
  one.cases = {std::move(c)};
  return one;
}

// Returns the mean of a part of the steps of all workers, in ns.
template <class Part> double mean_of(const measured_run& r, Part part) {
  double sum = 0, count = 0;
  for (const rank_record& rank : r.ranks)
    for (const step_time& s : rank.steps) {
      sum += static_cast<double>(part(s));
      ++count;
    }
  return count > 0 ? sum / count : 0;
}

double computing(const step_time& s) {
  return static_cast<double>(s.forward + s.backward);
}

void add_computing(machine_file& m, const measured_run& alone, const plugin_facts& facts,
                   const std::vector<simulated_tensor>& tensors, const simulated_tables& tables) {
  std::vector<std::string> names;
  double bytes = 0;
  for (const simulated_tensor& t : tensors) {
    names.push_back(t.name);
    bytes +=
        static_cast<double>(std::accumulate(t.shape.begin(), t.shape.end(), std::int64_t{1}, std::multiplies<>())) *
        sizeof(float);
  }
  if (alone.traces.empty()) throw failure(exit_code::run, "the baseline wrote no trace");
  traced_times traced = times_in_trace(alone.traces.front(), names);
  m.batch = static_cast<double>(facts.model.batch_per_worker);
  // The tensors' medians are scaled to the means of all timed steps: a rate is a mean.
  const double forward = mean_of(alone, [](const step_time& s) { return s.forward; });
  const double backward = mean_of(alone, [](const step_time& s) { return s.backward; }) - traced.after;
  double forwards = 0, backwards = 0;
  for (const tensor_times& t : traced.tensors) forwards += t.forward, backwards += t.backward;
  for (tensor_times& t : traced.tensors) {
    if (forwards > 0) t.forward *= forward / forwards;
    if (backwards > 0) t.backward *= std::max(0.0, backward) / backwards;
  }
  m.tensors = std::move(traced.tensors);
  m.input_ns = mean_of(alone, [](const step_time& s) { return s.input; });
  // With sparse tables, the passes end with the gradients of rows; a model without other tensors has nothing but these.
  if (!tables.all.empty()) m.after_ns = tensors.empty() ? mean_of(alone, computing) : traced.after;
  m.other_ns = (tables.all.empty() ? traced.after : 0) + mean_of(alone, [](const step_time& s) {
                 return s.end - s.begin - s.input - s.forward - s.backward - s.update;
               });
  std::vector<double> steps;
  for (const step_time& s : alone.ranks.front().steps) steps.push_back(computing(s));
  m.variation = variation(steps).value_or(0);
  if (steps.size() > 1) m.quantiles = relative_quantiles(steps);
  const double update = mean_of(alone, [](const step_time& s) { return s.update; });
  constexpr double bytes_of_update = 5; // the engine counts so many for each byte of a gradient
  double rows = 0;                      // bytes of their values in a step
  const std::vector<std::uint64_t>& touched = alone.ranks.front().touched_rows;
  for (std::size_t t = 0; t < std::min(touched.size(), tables.all.size()); ++t) {
    touched_table& of = m.tables.emplace_back();
    of.name = tables.all[t].name;
    of.batch = m.batch;
    of.rows = static_cast<double>(touched[t]) / static_cast<double>(std::max<std::size_t>(steps.size(), 1));
    rows += of.rows * static_cast<double>(tables.all[t].row) * sizeof(float);
  }
  // One time for both: the engine measures the updates of dense weights and of rows together, and the rows' reading.
  const double all = bytes_of_update * bytes + (bytes_of_update + (tables.in_place ? 0 : 3)) * rows;
  if (all > 0) m.work_of["apply"] = update / all;
  if (rows > 0) m.work_of["rows_apply"] = m.work_of["rows_read"] = update / all;
}

// Measures how much slower two or more workers compute side by side, and update their weights at the same time, up to the
// cores of this machine: three times, each after a worker alone.
void add_contention(machine_file& m, plugin_facts_cache& answers, const experiment& e, const case_config& c,
                    run_screen& screen) {
  const auto update = [](const step_time& s) { return static_cast<double>(s.update); };
  m.contention = m.operation_contention = {{1, 1}};
  for (std::int64_t workers = 2; workers <= static_cast<std::int64_t>(m.cores); workers *= 2) {
    case_config control = contention_of(c);
    control.cluster.workers = workers;
    if (c.train.scaling == "strong") control.train.batch *= workers; // a worker's batch stays the same
    std::vector<double> slowdowns, of_updates;
    for (int round = 0; round < rounds; ++round) {
      const measured_run one = run_once(answers, only(e, c, 0), screen),
                         all = run_once(answers, only(e, control, 0), screen);
      slowdowns.push_back(mean_of(all, computing) / mean_of(one, computing));
      if (mean_of(one, update) > 0) of_updates.push_back(mean_of(all, update) / mean_of(one, update));
    }
    m.contention.emplace_back(static_cast<double>(workers), std::max(1.0, median(slowdowns).value_or(1)));
    m.operation_contention.emplace_back(static_cast<double>(workers), std::max(1.0, median(of_updates).value_or(1)));
  }
}

// Medians over the steps of all workers, in ns: `exposed` is the time from the last worker's gradients to the step's
// end, which is free of the waiting for workers that this machine slows down.
struct step_medians {
  double computing = 0, exposed = 0;
};
step_medians medians_of(const std::vector<rank_record>& ranks) {
  std::vector<double> computed, exposed;
  for (const rank_record& rank : ranks)
    for (std::size_t n = 0; n < rank.steps.size(); ++n) {
      std::int64_t last = 0;
      for (const rank_record& other : ranks)
        if (n < other.steps.size()) last = std::max(last, other.steps[n].compute_end);
      computed.push_back(computing(rank.steps[n]));
      exposed.push_back(static_cast<double>(rank.steps[n].end - last));
    }
  return {median(computed).value_or(0), median(exposed).value_or(0)};
}

// Simulates the first case.
step_medians simulated(plugin_facts_cache& answers, const experiment& e, const machine_file& m) {
  campaign_records records(e);
  records.add(campaign_record(json::object()));
  std::vector<rank_record> ranks;
  std::string why;
  simulation_hooks hooks;
  hooks.record = [&](const json& record) {
    if (record.at("kind") == "failure") why = record.at("error");
    if (record.at("kind") == "run")
      for (const json& rank : record.at("ranks")) ranks.push_back(record_from_json(rank));
  };
  const int code = simulate_cases(answers, e, m, 1, records, hooks);
  if (code == static_cast<int>(exit_code::interrupted)) throw failure(exit_code::interrupted, "interrupted");
  if (!why.empty()) throw failure(static_cast<exit_code>(code), why);
  return medians_of(ranks);
}

// Steps of two workers with a ring, one after the other: how many times as long they compute as beside each other
// without messages, and the exposed time, in units of that computing.
struct measured_exchange {
  experiment ring;
  std::vector<double> computing, exposed;
};

// The costs of a transport for which a simulation of the exchanges has been compared with their measurement.
struct tried_costs {
  message_costs costs;                // computing_loss is set
  std::optional<loss_fit> loss;       // std::nullopt: computing loses too little to tell
  std::vector<double> exposed_errors; // for each exchange: of the exposed time, relative to the step's
  double residual = 0;                // the median of the errors of the step's time, relative to it
};

// Simulates the exchanges with these factors of the measured o and O, and fits computing_loss. `alone`: the computing of
// a simulation without messages.
tried_costs try_costs(machine_file& m, const std::string& transport, const message_costs& measured,
                      const std::array<double, 2>& factors, const std::vector<measured_exchange>& all, double alone,
                      plugin_facts_cache& answers) {
  message_costs& costs = m.transports.at(transport);
  costs = measured;
  costs.overhead_ns *= factors[0];
  costs.overhead_ns_per_byte *= factors[1];
  costs.overhead_in_training = factors[0];
  costs.overhead_per_byte_in_training = factors[1];
  std::vector<loss_sample> samples;
  for (const measured_exchange& x : all) {
    costs.computing_loss = 0;
    const double nothing = simulated(answers, x.ring, m).computing;
    costs.computing_loss = 1;
    samples.push_back(
        {nothing, simulated(answers, x.ring, m).computing - nothing, alone * median(x.computing).value_or(1)});
  }
  tried_costs tried;
  tried.loss = fit_loss(samples);
  costs.computing_loss = tried.loss ? tried.loss->loss : 1;
  std::vector<double> errors;
  for (const measured_exchange& x : all) {
    const step_medians is = simulated(answers, x.ring, m);
    const double exposed = alone * median(x.exposed).value_or(0),
                 step = exposed + alone * median(x.computing).value_or(1);
    tried.exposed_errors.push_back((is.exposed - exposed) / step);
    errors.push_back(std::abs((is.computing + is.exposed) / step - 1));
  }
  tried.residual = median(errors).value_or(0);
  tried.costs = costs;
  return tried;
}

// Fits the factors of o and O, and computing_loss, of a transport, so that what simulated steps expose and compute takes
// as long as in the measured ones: Gauss-Newton steps over the logarithms of the factors. `alone` is as for try_costs().
void fit_exchanges(machine_file& m, const std::string& transport, const std::vector<measured_exchange>& all,
                   double alone, plugin_facts_cache& answers) {
  constexpr int iterations = 8;
  constexpr double difference = 0.1, damping = 1e-4, most = 0.7; // of logarithms
  constexpr double least_factor = 0.2, most_factor = 20;
  const message_costs measured = m.transports.at(transport);
  const auto attempt = [&](const std::array<double, 2>& factors) {
    return try_costs(m, transport, measured, factors, all, alone, answers);
  };
  const auto squares = [](const tried_costs& t) {
    return std::inner_product(t.exposed_errors.begin(), t.exposed_errors.end(), t.exposed_errors.begin(), 0.0);
  };
  std::array<double, 2> factors{1, 1};
  tried_costs best = attempt(factors);
  for (int i = 0; i < iterations; ++i) {
    const tried_costs now = i == 0 ? best : attempt(factors);
    if (squares(now) < squares(best)) best = now;
    std::array<std::vector<double>, 2> derivatives;
    for (std::size_t k = 0; k < 2; ++k) {
      std::array<double, 2> more = factors;
      more[k] *= std::exp(difference);
      const tried_costs other = attempt(more);
      for (std::size_t x = 0; x < all.size(); ++x)
        derivatives[k].push_back((other.exposed_errors[x] - now.exposed_errors[x]) / difference);
    }
    const std::array<double, 2> step = least_squares_step(now.exposed_errors, derivatives, damping, most);
    for (std::size_t k = 0; k < 2; ++k)
      factors[k] = std::clamp(factors[k] * std::exp(step[k]), least_factor, most_factor);
  }
  if (const tried_costs last = attempt(factors); squares(last) < squares(best)) best = last;
  require_good_fit("steps with messages over " + transport, best.residual);
  message_costs& costs = m.transports.at(transport);
  costs = best.costs;
  costs.in_training_residual = best.residual;
  if (!best.loss) {
    costs.computing_loss.reset();
    return;
  }
  require_good_fit("computing beside messages over " + transport, best.loss->residual);
  costs.computing_loss_residual = best.loss->residual;
}

// Measures steps of two workers with a ring's messages beside steps without them, each worker on a core of its own: all
// gradients in one bucket, which exposes the exchange, and buckets of two sizes, whose messages go beside the backward
// pass.
void add_exchanges(machine_file& m, plugin_facts_cache& answers, const experiment& e, const case_config& alone,
                   run_screen& screen) {
  if (m.cores < 2 * static_cast<double>(alone.cluster.threads) || alone.train.device != "cpu" || m.tensors.empty())
    return;
  case_config control = alone;
  control.cluster.workers = 2;
  if (alone.train.scaling == "strong") control.train.batch *= 2; // a worker's batch stays the same
  const experiment without = only(e, control, 0);
  const auto bytes = static_cast<double>(answers.of(alone).model.weight_bytes);
  std::map<std::string, std::vector<measured_exchange>> exchanges; // by transport
  for (const auto& [transport, costs] : m.transports)
    for (const double bucket : {bytes, std::min(bytes / 4, 4.0 * (1 << 20)), std::min(bytes / 16, 1.0 * (1 << 20))}) {
      case_config c = control;
      c.strategy = {"allreduce", {{"algorithm", "ring"}, {"bucket", std::llround(std::max(bucket, 4096.0))}}};
      c.transport = {transport, {}};
      exchanges[transport].push_back({only(e, c, 0), {}, {}});
    }
  for (int round = 0; round < rounds; ++round) {
    const step_medians base = medians_of(run_once(answers, without, screen).ranks);
    for (auto& [transport, all] : exchanges)
      for (measured_exchange& x : all) {
        const step_medians is = medians_of(run_once(answers, x.ring, screen).ranks);
        x.computing.push_back(is.computing / base.computing);
        x.exposed.push_back(is.exposed / base.computing);
      }
  }
  const double computing_alone = simulated(answers, without, m).computing;
  for (const auto& [transport, all] : exchanges) fit_exchanges(m, transport, all, computing_alone, answers);
}

message_costs measure_messages(const std::string& transport, const calibrate_options& o) {
  comm_options c;
  c.transports = {transport};
  c.ops = {"send"};
  c.ranks = {2};
  c.most = "4MiB"; // strategies exchange buckets, of 4 MiB by default; larger messages leave the caches
  c.plugin_path = o.plugin_path;
  c.seconds = 0.1;
  // The median over five rounds of each size's median, or over more until the fit is good. Not the best round: now and
  // then both ranks of a ping-pong find each other's message without sleeping, which no training step does.
  constexpr int fewest_rounds = 5, most_rounds = 12;
  std::map<double, std::pair<std::vector<double>, std::vector<double>>> by_size; // time and CPU time, in ns
  message_costs costs;
  for (int round = 1; round <= most_rounds; ++round) {
    for (const json& r : measure_comm(c)) {
      auto& [ns, cpu_ns] = by_size[r.at("bytes")];
      ns.push_back(1e9 * r.at("seconds").at("median").get<double>());
      cpu_ns.push_back(1e9 * r.at("cpu_seconds").get<double>());
    }
    std::vector<message_sample> samples;
    for (const auto& [bytes, measured] : by_size)
      samples.push_back({bytes, *median(measured.first), *median(measured.second)});
    costs = fit_messages(samples);
    if (round >= fewest_rounds && costs.residual <= worst_residual) break;
  }
  return costs;
}

} // namespace

int calibrate_verb(const calibrate_options& o) {
  run_screen screen(o.progress);
  // Everything that may be refused comes before the measurements, which take minutes.
  std::optional<measured_sends> sends;
  if (!o.comm.empty()) sends = read_measured_sends(o.comm, o.transports);
  const std::filesystem::path folder = o.out.has_parent_path() ? o.out.parent_path() : ".";
  if (::access(folder.c_str(), W_OK) != 0)
    throw failure(exit_code::usage,
                  fmt::format("-o {}: {}: {}", o.out.string(), folder.string(), std::strerror(errno)));
  const registry plugins(plugin_folders(o.plugin_path, plugin_path_of(o.file, o.changes)));
  const experiment e = load_experiment(o.file, o.changes, catalogue_of(plugins));
  generate_data(e, [&](const std::string& text) { screen.say(text); });
  plugin_facts_cache answers(plugins);
  answers.addresses = addresses_of_interfaces;
  const case_config& first = e.cases.front();
  const case_config alone = baseline_of(first);
  if (e.cases.size() > 1)
    screen.say(fmt::format("of {} cases, the first one is measured: its model, batch and optimizer", e.cases.size()));
  machine_file m;
  const json host = describe_machine();
  m.name = host.at("name").is_string() ? host.at("name") : json("this machine");
  m.cpu = host.at("cpu").is_string() ? host.at("cpu") : json("");
  m.date = fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr)));
  m.cores = static_cast<double>(assign_cpus(this_hosts_cpus(), 1, 1, false).available);
  m.on_cores = alone.train.device == "cpu";
  m.model = first.model.id;
  m.fingerprint = fingerprint(alone, {}, {}).at("model");

  const plugin_facts& facts = answers.of(alone);
  const std::vector<simulated_tensor> tensors = tensors_of(plugins, alone);
  const measured_run baseline = run_once(answers, only(e, alone, traced_steps), screen);
  add_computing(m, baseline, facts, tensors,
                facts.model.table.empty() ? simulated_tables() : tables_of(plugins, alone));
  require_steady_steps(m.variation);
  if (m.variation > 0.2)
    screen.say(
        fmt::format("warning: the computing of steps varies by {:.0f} %: something else runs here", 100 * m.variation));
  add_contention(m, answers, e, alone, screen);
  screen.clear();
  for (const auto& [name, ns] : measure_operations()) m.work_of[name] = ns;
  const double sum = 3 * m.work_of.at("axpy"); // which reads two bytes and writes one for each byte
  m.work_ns_per_byte = m.work_of.at("copy");
  for (const std::string& transport : o.transports) {
    message_costs c = measure_messages(transport, o);
    require_good_fit("messages over " + transport, c.residual.value_or(0));
    c.add_ns_per_byte = sum;
    m.transports[transport] = c;
  }
  if (sends) m.between = network_of(*sends, m.transports.at(sends->transport));
  add_exchanges(m, answers, e, alone, screen);
  screen.clear();
  const std::string text = machine_text(m);
  try {
    write_atomically(o.out.string(), text);
  } catch (const failure& f) {
    throw failure(exit_code::usage, fmt::format("-o {}: {}", o.out.string(), f.what()));
  }
  double forward = 0, backward = 0;
  for (const tensor_times& t : m.tensors) forward += t.forward, backward += t.backward;
  std::string out = fmt::format("{}: {}, batch {:g}\nforward {:.3f} ms, backward {:.3f} ms, variation {:.1f} %, other "
                                "{:.3f} ms\n",
                                o.out.string(), m.model, m.batch, forward * 1e-6, backward * 1e-6, 100 * m.variation,
                                m.other_ns * 1e-6);
  for (const touched_table& t : m.tables) out += fmt::format("table {}: {:.1f} rows a step\n", t.name, t.rows);
  for (std::size_t i = 1; i < m.contention.size(); ++i)
    out += fmt::format("{:g} workers side by side: computing takes {:.3f} times as long, the update {:.3f} times\n",
                       m.contention[i].first, m.contention[i].second, m.operation_contention[i].second);
  for (const auto& [id, c] : m.transports) {
    out += fmt::format("{}: L {:.1f} us, o {:.1f} us, O {:.3f} ns/B, G {:.3f} ns/B, residual {:.0f} %\n", id,
                       c.latency_ns * 1e-3, c.overhead_ns * 1e-3, c.overhead_ns_per_byte, 1 / c.bytes_per_ns,
                       100 * c.residual.value_or(0));
    if (c.overhead_in_training)
      out += fmt::format("{}: in a training step o is {:.2f} and O {:.2f} times that of ping-pong, residual {:.1f} %\n",
                         id, *c.overhead_in_training, c.overhead_per_byte_in_training.value_or(1),
                         100 * c.in_training_residual.value_or(0));
    if (c.computing_loss)
      out += fmt::format("{}: computing loses {:.2f} ns for each ns of them on its core, residual {:.1f} %\n", id,
                         *c.computing_loss, 100 * c.computing_loss_residual.value_or(0));
  }
  if (m.between.residual)
    out += fmt::format("between hosts: {:.3g} Gbit/s, {:.1f} us, residual {:.0f} %\n", 8 * m.between.bytes_per_ns,
                       m.between.latency_ns * 1e-3, 100 * *m.between.residual);
  print_output(out);
  return 0;
}

} // namespace regatta

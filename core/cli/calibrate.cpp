// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate.hpp"

#include "base/failure.hpp"
#include "calibrate/computing.hpp"
#include "calibrate/exchanges.hpp"
#include "cli/comm.hpp"
#include "cli/data.hpp"
#include "cli/machine.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/run_screen.hpp"
#include "cli/standard_output.hpp"
#include "files/write_atomically.hpp"
#include "launch/cpus.hpp"
#include "network/interfaces.hpp"
#include "results/case_entry.hpp"
#include "results/statistics.hpp"
#include "simulate/fit.hpp"
#include "simulate/measured_network.hpp"
#include "simulate/measured_operations.hpp"
#include "simulate/simulated_run.hpp"
#include "text/values.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
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

// Sets so many timed steps that they take half a second together: short ones vary much.
void lengthen(case_config& c, double step_ns) {
  if (step_ns > 0) c.measure.steps = std::max<std::int64_t>(c.measure.steps, std::llround(0.5e9 / step_ns));
}

message_costs measure_messages(const std::string& transport, const calibrate_options& o) {
  comm_options c;
  c.transports = {transport};
  c.ops = {"send"};
  c.ranks = {2};
  c.most = "64MiB"; // of one bucket for all gradients; those of 4 MiB, the default, stay in the caches
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

std::string in_words(const message_work& w) {
  std::string text = fmt::format("o {:.1f} us, O {:.3f} ns/B", w.overhead_ns * 1e-3, w.overhead_ns_per_byte);
  if (std::isfinite(w.large_from))
    text += fmt::format(" ({:.3f} beyond {})", w.large_factor * w.overhead_ns_per_byte,
                        exact_bytes(std::llround(w.large_from)));
  return text;
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
  case_config alone = baseline_of(first);
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
  const measuring by{answers, e, [&](const progress& p) { screen.show(p); }};
  lengthen(alone, mean_of(run_once(by, alone), [](const step_time& s) { return s.end - s.begin; }));
  std::vector<measured_run> baselines;
  std::vector<double> relative; // the computing of each, in units of the first one's
  for (calibration_rounds rounds; rounds.next(standard_error(relative));) {
    baselines.push_back(run_once(by, alone, rounds.first() ? calibration_traced_steps : 0));
    relative.push_back(mean_of(baselines.back(), computing) / mean_of(baselines.front(), computing));
  }
  add_computing(m, baselines, facts, tensors,
                facts.model.table.empty() ? simulated_tables() : tables_of(plugins, alone));
  require_steady_steps(m.variation);
  if (m.variation > 0.2)
    screen.say(
        fmt::format("warning: the computing of steps varies by {:.0f} %: something else runs here", 100 * m.variation));
  add_contention(m, by, alone);
  screen.clear();
  std::int64_t gradients = 0;
  for (const simulated_tensor& t : tensors)
    gradients += std::accumulate(t.shape.begin(), t.shape.end(), std::int64_t{1}, std::multiplies<>());
  for (const auto& [name, ns] : measure_operations(static_cast<std::uint64_t>(gradients))) m.work_of[name] = ns;
  const double sum = 3 * m.work_of.at("axpy"); // which reads two bytes and writes one for each byte
  m.work_ns_per_byte = m.work_of.at("copy");
  for (const std::string& transport : o.transports) {
    message_costs c = measure_messages(transport, o);
    require_good_fit("messages over " + transport, c.residual.value_or(0));
    c.add_ns_per_byte = sum;
    m.transports[transport] = c;
  }
  if (sends) {
    message_costs& costs = m.transports.at(sends->transport);
    m.between = network_of(*sends, costs);
    costs.between_hosts = sends->work;
  }
  add_exchanges(m, by, alone);
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
    out += fmt::format("{}: L {:.1f} us, {}, G {:.3f} ns/B, residual {:.0f} %\n", id, c.latency_ns * 1e-3, in_words(c),
                       1 / c.bytes_per_ns, 100 * c.residual.value_or(0));
    if (c.between_hosts) out += fmt::format("{}: between hosts {}\n", id, in_words(*c.between_hosts));
    if (c.overhead_in_training)
      out += fmt::format(
          "{}: in a training step o is {:.2f} and O {:.2f} times that of ping-pong ({:.0f} % the sender's), "
          "an update {:.2f} times that without messages, residual {:.1f} %\n",
          id, *c.overhead_in_training, c.overhead_per_byte_in_training.value_or(1), 100 * c.send_share,
          c.apply_in_training, 100 * c.in_training_residual.value_or(0));
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

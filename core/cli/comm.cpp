// SPDX-License-Identifier: Apache-2.0
#include "cli/comm.hpp"

#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "campaign/prepare.hpp"
#include "cli/comm_launch.hpp"
#include "cli/indented_table.hpp"
#include "cli/launcher_ranks.hpp"
#include "cli/machine.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/rank_logs.hpp"
#include "cli/set_option.hpp"
#include "cli/standard_output.hpp"
#include "comm/matrix.hpp"
#include "comm/patterns.hpp"
#include "comm/plan.hpp"
#include "comm/results.hpp"
#include "experiment/experiment.hpp"
#include "join/placement.hpp"
#include "join/start.hpp"
#include "launch/cpus.hpp"
#include "launch/launch.hpp"
#include "machine/host.hpp"
#include "network/interfaces.hpp"
#include "registry/run_in_child.hpp"
#include "registry/transport_host.hpp"
#include "report/context.hpp"
#include "results/case_entry.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace regatta {
namespace {

using nlohmann::json;

void check_choice(const std::string& option, const std::vector<std::string>& given,
                  const std::vector<std::string>& all) {
  for (const std::string& name : given)
    if (std::find(all.begin(), all.end(), name) == all.end())
      throw failure(exit_code::usage,
                    fmt::format("{} {}: expected {}{}", option, one_line(name), join(all), did_you_mean(name, all)));
}

std::uint64_t size_of_option(const char* option, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes < 4)
    throw failure(exit_code::usage,
                  fmt::format("{} {}: expected a size of 4 bytes or more, such as \"64KiB\"", option, one_line(text)));
  return static_cast<std::uint64_t>(*bytes);
}

// Throws failure (usage) unless the text is "auto", "none" or a time of 100 ms or more, as for measure.timeout.
void check_timeout(const std::string& text) {
  if (text == "auto" || text == "none") return;
  const auto ns = parse_nanoseconds(text);
  if (!ns || *ns < 100'000'000)
    throw failure(exit_code::usage,
                  fmt::format("--timeout {}: expected auto, none or a time of 100 ms or more, such as "
                              "\"20s\"",
                              one_line(text)));
}

std::vector<std::uint64_t> counts_of(const comm_options& o) {
  const std::uint64_t least = size_of_option("--min", o.least), most = size_of_option("--max", o.most);
  if (most < least) throw failure(exit_code::usage, fmt::format("--max {} is less than --min {}", o.most, o.least));
  std::vector<std::uint64_t> counts;
  for (std::uint64_t bytes = least; bytes < most; bytes *= o.factor) counts.push_back(bytes / sizeof(float));
  counts.push_back(most / sizeof(float)); // the largest size is always measured
  return counts;
}

std::vector<comm::operation> operations_of(const comm_options& o) {
  check_choice("--op", o.ops,
               {"allreduce", "reducescatter", "allgather", "alltoall", "broadcast", "send", "push_pull"});
  std::vector<std::string> known; // algorithms of the given operations
  std::vector<comm::operation> all;
  const auto wanted = [&](const std::string& a) {
    return o.algorithms.empty() || std::find(o.algorithms.begin(), o.algorithms.end(), a) != o.algorithms.end();
  };
  for (const std::string& op : o.ops) {
    const std::vector<std::string> ways = comm::algorithms_of(op);
    if (ways.empty()) all.push_back({op, ""});
    for (const std::string& a : ways) {
      if (wanted(a)) all.push_back({op, a});
      if (std::find(known.begin(), known.end(), a) == known.end()) known.push_back(a);
    }
  }
  if (known.empty() && !o.algorithms.empty())
    throw failure(exit_code::usage, "--algorithm: " + join(o.ops) + " has only one algorithm; leave the option out");
  check_choice("--algorithm", o.algorithms, known);
  return all;
}

// Parses --set ID.NAME=VALUE options; returns the values by id and name.
std::map<std::string, std::map<std::string, json>> parameters_of(const comm_options& o) {
  std::map<std::string, std::map<std::string, json>> all;
  for (const std::string& s : o.set) {
    const auto dot = s.find('.'), equals = s.find('=');
    if (dot == std::string::npos || equals == std::string::npos || dot == 0 || equals < dot + 2)
      throw failure(exit_code::usage, fmt::format("--set {}: expected ID.NAME=VALUE", one_line(s)));
    const std::string id = s.substr(0, dot);
    if (std::find(o.transports.begin(), o.transports.end(), id) == o.transports.end())
      throw failure(exit_code::usage, fmt::format("--set {}: {} is not among the transports", one_line(s), id));
    all[id][s.substr(dot + 1, equals - dot - 1)] = value_of_option(s.substr(equals + 1));
  }
  return all;
}

// Throws failure (usage) if the transport needs a launcher and there is none, or if the launcher started fewer ranks.
// Makes the launcher's processes join the transport.
void check_launch(const component& c, const std::vector<unsigned>& ranks, host_group* launcher) {
  const unsigned most = *std::max_element(ranks.begin(), ranks.end());
  if (launcher && most > launcher->size())
    throw failure(exit_code::usage,
                  fmt::format("--ranks {}: {} has started {}", most, launcher->launcher(), launcher->size()));
  if (c.launcher.empty()) return;
  if (!launcher) throw launcher_missing(c.id, c.launcher, most, "comm --transport " + c.id);
  launcher->join(c.file.string(), c.id);
}

// Sets what to measure for --matrix: latency of 8 B, bandwidth of the largest size.
void set_matrix(comm::plan& p, const comm_options& o, const std::vector<unsigned>& ranks) {
  const std::uint64_t large = size_of_option("--max", o.most);
  if (large < 8) throw failure(exit_code::usage, "--max with --matrix: expected 8 bytes or more");
  p.counts = {8 / sizeof(float), large / sizeof(float)};
  const double n = *std::ranges::max_element(ranks), pairs = n * (n - 1) / 2;
  constexpr double pass_seconds = 60, parts = 3; // a pair: latency, and bandwidth in both directions
  p.pairs = {
      .repeats = 2, .alone = true, .at_once = true, .seconds = std::min(o.seconds, pass_seconds / pairs / parts)};
}

// Returns the entries of a run for "results".
json entries_of(const comm_outcome& run) {
  std::vector<std::vector<comm::measurement>> by_rank;
  for (const json& r : run.results) by_rank.push_back(r.get<std::vector<comm::measurement>>());
  return comm::entries_of(run.plan, by_rank);
}

} // namespace

json measure_comm(const comm_options& o) {
  const registry plugins(plugin_folders(o.plugin_path));
  const auto parameters = parameters_of(o);
  comm::plan p;
  p.operations = operations_of(o);
  p.counts = counts_of(o);
  p.seconds = o.seconds;
  const std::vector<std::vector<std::string>> addresses{addresses_of_interfaces(o.interface)};
  p.ranks = o.ranks.at(0);
  json all = json::array();
  std::vector<std::string> warnings;
  for (const std::string& id : o.transports) {
    const auto given = parameters.find(id);
    p.transport = id;
    p.parameters = given == parameters.end() ? std::map<std::string, json>{} : given->second;
    p.files = files_of_transport(plugins, {id, p.parameters});
    const comm_launch_options how{.timeout = o.timeout, .log = o.log, .pin = !o.no_pin};
    for (json& entry : entries_of(launch_comm(p, how, nullptr, addresses, warnings))) all.push_back(std::move(entry));
  }
  return all;
}

int comm_verb(const comm_options& o) {
  const auto form = format_named(o.format);
  if (!form)
    throw failure(exit_code::usage, fmt::format("--format {}: expected console, markdown, csv or json", o.format));
  const auto spin = o.spin == "0" ? std::optional<std::int64_t>(0) : parse_nanoseconds(o.spin);
  if (!spin || *spin < 0)
    throw failure(exit_code::usage, fmt::format("--spin {}: expected a time such as \"50us\"", one_line(o.spin)));
  check_timeout(o.timeout);
  // Does not return in the launcher's own processes.
  const auto launcher = start_under_launcher(make_launcher_request_handlers(), o.allow_different_binaries);
  const bool matrix = !o.matrix.empty(), one_per_host = o.matrix == "hosts";
  std::vector<unsigned> numbers = o.ranks;
  if (matrix && launcher)
    numbers = {one_per_host ? static_cast<unsigned>(launcher->hosts().size()) : launcher->size()};
  else if (one_per_host)
    throw failure(exit_code::usage, "--matrix hosts: expected processes that a launcher started; one host has no links "
                                    "to others: use --matrix ranks --ranks N");
  if (matrix && numbers.front() < 2)
    throw failure(exit_code::usage, "--matrix: expected two or more ranks, or hosts with --matrix hosts, got 1");
  const registry plugins(plugin_folders(o.plugin_path));
  const auto parameters = parameters_of(o);
  comm::plan p;
  if (matrix)
    set_matrix(p, o, numbers);
  else {
    p.operations = operations_of(o);
    p.counts = counts_of(o);
  }
  p.seconds = o.seconds;
  p.spin_ns = static_cast<std::uint64_t>(*spin);
  std::vector<std::vector<std::string>> addresses; // by host
  if (launcher)
    addresses = launcher->addresses(o.interface);
  else
    addresses.push_back(addresses_of_interfaces(o.interface));

  // Report errors of the command before any run starts.
  json used = json::array();
  std::vector<std::pair<component_choice, std::vector<std::string>>> transports;
  for (const std::string& id : o.transports) {
    const component& c = plugins.find(kind::transport, id);
    check_launch(c, numbers, launcher.get());
    const auto given = parameters.find(id);
    const auto chosen = given == parameters.end() ? std::map<std::string, json>{} : given->second;
    transports.push_back({{id, chosen}, files_of_transport(plugins, {id, chosen})});
    if (launcher) launcher->require_files(transports.back().second, transports.back().second);
    used.push_back({{"kind", "transport"},
                    {"id", id},
                    {"version", c.plugin_version},
                    {"path", c.file.string()},
                    {"sha256", sha256_of(c.file)},
                    {"parameters", chosen}});
  }
  std::vector<std::string> warnings;
  if (auto w = build_warning()) warnings.push_back(*w);
  if (launcher) warnings.insert(warnings.end(), launcher->warnings().begin(), launcher->warnings().end());
  const json machine = machine_now(); // nothing else of this program runs yet
  json results = json::array(), failures = json::array(), matrices = json::array();
  int code = static_cast<int>(exit_code::done);
  for (const auto& [choice, files] : transports)
    for (const unsigned ranks : numbers) {
      p.transport = choice.id;
      p.parameters = choice.parameters;
      p.files = files;
      p.ranks = ranks;
      try {
        const comm_launch_options how{.timeout = o.timeout,
                                      .log = o.log,
                                      .pin = !o.no_pin,
                                      .own_processes = !plugins.find(kind::transport, choice.id).launcher.empty(),
                                      .one_per_host = one_per_host};
        const comm_outcome run = launch_comm(p, how, launcher.get(), addresses, warnings);
        if (matrix) {
          matrices.push_back(comm::matrix_of(run.plan, run.hosts, run.results));
          continue;
        }
        for (json& entry : entries_of(run)) results.push_back(std::move(entry));
      } catch (const failure& e) {
        if (e.code() == exit_code::interrupted) throw;
        print_error(one_line(e.what()) + "\n");
        failures.push_back({{"transport", choice.id}, {"ranks", ranks}, {"error", e.what()}});
        code = worse_exit_code(code, static_cast<int>(e.code()));
      }
    }
  json hosts = launcher ? json(launcher->descriptions()) : json::array({describe_host(cgroup_cpu_limit())});
  if (!launcher) add_links(hosts[0], o.interface, links_of_interfaces(o.interface));
  json context = make_context(o.command, std::move(hosts), used, warnings);
  context["machine"] = machine;
  json document = {{"schema", "regatta.comm/1"}, {"context", context}, {"results", results}, {"failures", failures}};
  if (matrix) document["matrix"] = matrices;
  print_output(comm::render_comm(document, *form, terminal_width(fileno(document_stream()))));
  const bool wrong = std::any_of(results.begin(), results.end(), [](const json& r) { return r.at("wrong") != 0; });
  if (!wrong) return code;
  print_error("regatta: results are wrong: see #wrong\n");
  return worse_exit_code(code, static_cast<int>(exit_code::wrong));
}

} // namespace regatta

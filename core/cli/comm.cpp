// SPDX-License-Identifier: Apache-2.0
#include "cli/comm.hpp"

#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "campaign/prepare.hpp"
#include "cli/indented_table.hpp"
#include "cli/launcher_ranks.hpp"
#include "cli/machine.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/rank_logs.hpp"
#include "cli/set_option.hpp"
#include "cli/standard_output.hpp"
#include "comm/patterns.hpp"
#include "comm/plan.hpp"
#include "comm/results.hpp"
#include "experiment/experiment.hpp"
#include "launch/address.hpp"
#include "launch/cpus.hpp"
#include "launch/launch.hpp"
#include "machine/host.hpp"
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

// Returns the plugin files that the transport needs, including those of nested transports. Throws failure if it cannot
// be created or connects no ranks.
std::vector<std::string> files_of(const registry& plugins, const component_choice& choice) {
  (void)parameter_values(plugins.find(kind::transport, choice.id), choice.parameters); // throws if they do not fit
  return run_in_child([&](const stage_function& stage) -> json {
    const transport_summary t = summarise_transport(plugins.loading(), choice.id, choice.parameters, stage);
    if (t.caps.flags & RG_CAP_NONE)
      throw failure(
          exit_code::usage,
          fmt::format("transport {} has no connections between ranks, so there is nothing to measure: use shm or tcp",
                      choice.id));
    return t.files;
  });
}

// Throws failure (usage) if the transport needs a launcher and there is none, or if the launcher started fewer ranks.
// Makes the launcher's processes join the transport.
void check_launch(const component& c, const std::vector<unsigned>& ranks, launcher_ranks* launcher) {
  const unsigned most = *std::max_element(ranks.begin(), ranks.end());
  if (launcher && most > launcher->size())
    throw failure(exit_code::usage,
                  fmt::format("--ranks {}: {} has started {}", most, launcher->launcher_name(), launcher->size()));
  if (c.launcher.empty()) return;
  if (!launcher) throw launcher_missing(c.id, c.launcher, most, "comm --transport " + c.id);
  launcher->join(c.file.string(), c.id);
}

// Runs one plan and returns its entries for "results". Adds a warning if ranks share cores. Throws failure if the run
// fails or the user interrupts it.
json measure(const comm::plan& p, const comm_options& o, launcher_ranks* launcher, std::vector<std::string>& warnings) {
  comm::plan mine = p;
  const cpu_assignment cpus = assign_cpus(p.ranks, 1, !o.no_pin);
  if (cpus.oversubscribed) {
    mine.spin_ns = 0;
    const std::string text =
        fmt::format("{} ranks on {} cores{}", p.ranks, cpus.available, p.spin_ns ? ": they do not spin" : "");
    if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(text);
  }
  launch_plan launched;
  launched.address = p.addresses.front();
  launched.launcher = launcher;
  set_timeout(launched, o.timeout);
  launched.stall.setting = "--timeout";
  const json job = {{"comm", mine}};
  for (std::uint32_t r = 0; r < p.ranks; ++r)
    launched.ranks.push_back({fmt::format("rank of {}", p.transport), cpus.cpus[r], job});
  launch_hooks hooks;
  hooks.log = [shown = log_level_named(o.log).value_or(RG_LOG_WARNING)](std::uint32_t rank, int level,
                                                                        const std::string& text) {
    if (level <= shown)
      print_error(fmt::format("{}{}\n", rank == coordinator_rank ? "" : fmt::format("rank {}: ", rank), cleaned(text)));
  };
  const launch_result result = launch(launched, hooks);
  if (result.interrupted) throw failure(exit_code::interrupted, "interrupted");
  if (result.failure)
    throw failure(static_cast<exit_code>(result.failure->code),
                  fmt::format("{} between {} ranks: {}", p.transport, p.ranks, result.failure->message));
  std::vector<std::vector<comm::measurement>> by_rank;
  for (const json& r : result.results) by_rank.push_back(r.get<std::vector<comm::measurement>>());
  return comm::entries_of(mine, by_rank);
}

} // namespace

json measure_comm(const comm_options& o) {
  const registry plugins(plugin_folders(o.plugin_path));
  const auto parameters = parameters_of(o);
  comm::plan p;
  p.operations = operations_of(o);
  p.counts = counts_of(o);
  p.seconds = o.seconds;
  p.addresses = addresses_of_interfaces(o.interface);
  p.ranks = o.ranks.at(0);
  json all = json::array();
  std::vector<std::string> warnings;
  for (const std::string& id : o.transports) {
    const auto given = parameters.find(id);
    p.transport = id;
    p.parameters = given == parameters.end() ? std::map<std::string, json>{} : given->second;
    p.files = files_of(plugins, {id, p.parameters});
    for (json& entry : measure(p, o, nullptr, warnings)) all.push_back(std::move(entry));
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
  const auto launcher =
      start_under_launcher(make_launcher_request_handlers()); // does not return in processes that are ranks
  const registry plugins(plugin_folders(o.plugin_path));
  const auto parameters = parameters_of(o);
  comm::plan p;
  p.operations = operations_of(o);
  p.counts = counts_of(o);
  p.seconds = o.seconds;
  p.spin_ns = static_cast<std::uint64_t>(*spin);
  p.addresses = addresses_of_interfaces(o.interface);

  // Report errors of the command before any run starts.
  json used = json::array();
  std::vector<std::pair<component_choice, std::vector<std::string>>> transports;
  for (const std::string& id : o.transports) {
    const component& c = plugins.find(kind::transport, id);
    check_launch(c, o.ranks, launcher.get());
    const auto given = parameters.find(id);
    const auto chosen = given == parameters.end() ? std::map<std::string, json>{} : given->second;
    transports.push_back({{id, chosen}, files_of(plugins, {id, chosen})});
    used.push_back({{"kind", "transport"},
                    {"id", id},
                    {"version", c.plugin_version},
                    {"path", c.file.string()},
                    {"sha256", sha256_of(c.file)},
                    {"parameters", chosen}});
  }
  std::vector<std::string> warnings;
  if (auto w = build_warning()) warnings.push_back(*w);
  const json machine = machine_now(); // nothing else of this program runs yet
  json results = json::array(), failures = json::array();
  int code = static_cast<int>(exit_code::done);
  for (const auto& [choice, files] : transports)
    for (const unsigned ranks : o.ranks) {
      p.transport = choice.id;
      p.parameters = choice.parameters;
      p.files = files;
      p.ranks = ranks;
      try {
        for (json& entry : measure(p, o, launcher.get(), warnings)) results.push_back(std::move(entry));
      } catch (const failure& e) {
        if (e.code() == exit_code::interrupted) throw;
        print_error(one_line(e.what()) + "\n");
        failures.push_back({{"transport", choice.id}, {"ranks", ranks}, {"error", e.what()}});
        code = worse_exit_code(code, static_cast<int>(e.code()));
      }
    }
  json context = make_context(o.command, json::array({describe_host(cgroup_cpu_limit())}), used, warnings);
  context["machine"] = machine;
  const json document = {
      {"schema", "regatta.comm/1"}, {"context", context}, {"results", results}, {"failures", failures}};
  print_output(comm::render_comm(document, *form, terminal_width(fileno(document_stream()))));
  const bool wrong = std::any_of(results.begin(), results.end(), [](const json& r) { return r.at("wrong") != 0; });
  if (!wrong) return code;
  print_error("regatta: results are wrong: see #wrong\n");
  return worse_exit_code(code, static_cast<int>(exit_code::wrong));
}

} // namespace regatta

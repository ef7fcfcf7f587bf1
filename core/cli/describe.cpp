// SPDX-License-Identifier: Apache-2.0
#include "cli/describe.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "check/plugin/sample_cluster.hpp"
#include "cli/indented_table.hpp"
#include "cli/network.hpp"
#include "cli/set_option.hpp"
#include "cli/standard_output.hpp"
#include "cluster/peers.hpp"
#include "cluster/plan.hpp"
#include "registry/parameters.hpp"
#include "registry/plugin_host.hpp"
#include "registry/registry.hpp"
#include "registry/run_in_child.hpp"
#include "registry/transport_host.hpp"
#include "registry/validate.hpp"
#include "text/values.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::ordered_json;

const component& find(const registry& plugins, const std::string& name) {
  const auto slash = name.find('/');
  const auto k = kind_of(std::string_view(name).substr(0, slash));
  if (slash == std::string::npos || !k)
    throw failure(
        exit_code::usage,
        fmt::format("\"{}\": expected KIND/ID with one of model, executor, transport, strategy as KIND, such "
                    "as model/mlp{}; a plugin of your own: KIND/ID --plugin-path FILE",
                    one_line(name),
                    k ? "" : did_you_mean(name.substr(0, slash), {"model", "executor", "transport", "strategy"})));
  return plugins.find(*k, std::string_view(name).substr(slash + 1));
}

// -------------------------------------------------------------------------------------------------- parameters ---

constexpr std::string_view unit_names[] = {"", "bytes", "nanoseconds", "bits per second"};

ordered_json parameter_json(const rg_param& p) {
  ordered_json j{{"name", p.name}, {"type", type_name(p)}, {"help", p.help}, {"default", ordered_json(default_of(p))}};
  j["required"] = !p.default_value;
  if (p.unit) j["unit"] = unit_names[p.unit];
  if (is_bounded(p) && std::isfinite(p.min)) j["min"] = p.min;
  if (is_bounded(p) && std::isfinite(p.max)) j["max"] = p.max;
  for (auto c = p.choices; c && *c; ++c) j["choices"].push_back(*c);
  return j;
}

// Returns the default as a user would write it in the file.
std::string default_text(const rg_param& p) {
  const auto value = default_of(p);
  if (value.is_null()) return "(must be given)";
  std::string text;
  if (p.unit == RG_UNIT_BYTES) text = exact_bytes(value.get<std::int64_t>());
  if (p.unit == RG_UNIT_NANOSECONDS) text = exact_nanoseconds(value.get<std::int64_t>());
  if (p.unit == RG_UNIT_BITS_PER_SECOND) text = exact_bits_per_second(value.get<double>());
  return text.empty() ? value.dump() : '"' + text + '"';
}

void print_parameters(const component& c) {
  if (c.parameters.empty()) {
    print_output("\nno parameters\n");
    return;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& p : c.parameters) rows.push_back({p.name, default_text(p), expectation(p), one_line(p.help)});
  print_output(
      fmt::format("\nparameters\n{}", indented({{"name"}, {"default"}, {"allowed"}, {"meaning"}}, std::move(rows))));
}

// ------------------------------------------------------------------------------------------------ capabilities ---

// `device`: the kind of device; empty: any.
ordered_json memory_json(std::uint32_t mask, const std::string& device) {
  ordered_json kinds = ordered_json::array();
  if (mask & RG_MEMORY_HOST) kinds.push_back("host");
  if (mask & RG_MEMORY_DEVICE) kinds.push_back(device.empty() ? "any device" : device);
  return kinds;
}

using chosen_values = std::map<std::string, nlohmann::json>;

ordered_json transport_json(const registry& plugins, const component& c, const chosen_values& chosen,
                            const stage_function& stage) {
  const transport_summary t = summarise_transport(plugins, c.id, chosen, stage);
  const rg_transport_caps& caps = t.caps;
  const char* const p2p[] = {"unknown", "independent", "ordered", "none"};
  return {{"memory", memory_json(caps.memory, t.device)},
          {"point_to_point", p2p[caps.p2p]},
          {"no_connections", (caps.flags & RG_CAP_NONE) != 0},
          {"adds_on_receive", (caps.flags & RG_CAP_ADD) != 0},
          {"orders_receives", (caps.flags & RG_CAP_ORDERED_RECEIVES) != 0},
          {"converts_wire_types", (caps.flags & RG_CAP_CONVERT) != 0},
          {"exact_sizes", (caps.flags & RG_CAP_EXACT_SIZE) != 0},
          {"long_message_fails", caps.flags & RG_CAP_LONG_FAILS_SENDER ? "receive and send" : "receive"},
          {"one_host_only", (caps.flags & RG_CAP_ONE_HOST) != 0},
          {"can_sleep", (caps.flags & RG_CAP_SLEEP) != 0},
          {"virtual_time", (caps.flags & RG_CAP_VIRTUAL) != 0},
          {"cancel_reaches", caps.flags & RG_CAP_CANCEL_ALL ? "all" : "peer"},
          {"own_threads", caps.own_threads},
          {"collectives", t.collectives},
          {"sums_in_rank_order", (caps.flags & RG_CAP_ASCENDING_SUMS) != 0},
          {"extensions", t.extensions}};
}

// Returns when all workers have the same weights, in words.
std::string same_weights(const rg_plan& plan) {
  if (plan.flags & RG_PLAN_SYNCHRONOUS) return "after every step";
  return plan.flags & RG_PLAN_AGREES ? "at the end" : "not promised";
}

std::string symmetry(const rg_plan& plan) {
  switch (plan.symmetry) {
  case RG_SYMMETRY_CLASSES: return "classes";
  case RG_SYMMETRY_ROTATION: return "rotation";
  case RG_SYMMETRY_XOR: return "xor";
  case RG_SYMMETRY_HOSTS: return "hosts";
  default: return "none";
  }
}

// Returns when a worker waits for the slowest one, in words.
std::string waits_of(const rg_plan& plan) {
  if (plan.flags & RG_PLAN_SYNCHRONOUS) return "in every step";
  if (!(plan.flags & RG_PLAN_BOUNDED)) return "never";
  const std::string ahead =
      plan.bound ? fmt::format("when {} step{} ahead", plan.bound, plan.bound == 1 ? "" : "s") : "";
  if (plan.period <= 1) return ahead.empty() ? "in every step" : ahead;
  return fmt::format("once in {} steps{}{}", plan.period, ahead.empty() ? "" : ", ", ahead);
}

ordered_json strategy_json(const registry& plugins, const component& described, const chosen_values& chosen,
                           const stage_function& stage) {
  const auto who = fmt::format("strategy {} ({})", described.id, described.file.string());
  stage(who, "was being loaded");
  const component& c = plugins.find(kind::strategy, described.id);
  const parameter_values values(c, chosen);
  stage(who, "was asked for its plan");
  const rg_cluster cluster = sample_cluster();
  plugin_host host;
  auto plan = rg::make_versioned<rg_plan>();
  call(host, "strategy " + c.id, [&] { return c.strategy.plan(host.c(), values.data(), &cluster, &plan); });
  validate(plan, talks(c.strategy, values.data(), cluster), "strategy " + c.id);
  return {{"servers", (plan.flags & RG_PLAN_SERVERS) != 0},
          {"synchronous", (plan.flags & RG_PLAN_SYNCHRONOUS) != 0},
          {"lossy", (plan.flags & RG_PLAN_LOSSY) != 0},
          {"resumes", (plan.flags & RG_PLAN_RESUMES) != 0},
          {"survives", (plan.flags & RG_PLAN_SURVIVES) != 0},
          {"symmetry", symmetry(plan)},
          {"same_weights", same_weights(plan)},
          {"waits_for_the_slowest", waits_of(plan)},
          {"needs_independent_lanes", (plan.flags & RG_PLAN_INDEPENDENT) != 0},
          {"rows_of_sparse_tables", (plan.flags & RG_PLAN_ROWS) != 0},
          {"needs_bytes", (plan.flags & RG_PLAN_BYTES) != 0},
          {"sends_short_messages", (plan.flags & RG_PLAN_SHORT) != 0},
          {"needs_collectives", (plan.flags & RG_PLAN_COLLECTIVES) != 0},
          {"needs_equal_hosts", (plan.flags & RG_PLAN_EQUAL_HOSTS) != 0},
          {"needs_row_major_tensors", (plan.flags & RG_PLAN_ROW_MAJOR) != 0},
          {"applies_momentum", (plan.flags & RG_PLAN_MOMENTUM) != 0},
          {"lanes", std::max(plan.lanes, 1u)},
          {"period", std::max<std::uint64_t>(plan.period, 1)},
          {"steady_from", plan.steady_from}};
}

ordered_json capabilities(const registry& plugins, const component& c, const chosen_values& chosen,
                          const stage_function& stage) {
  switch (c.kind) {
  case kind::executor: return {{"memory", memory_json(c.executor.memory, c.device)}};
  case kind::transport: return transport_json(plugins, c, chosen, stage);
  case kind::strategy: return strategy_json(plugins, c, chosen, stage);
  case kind::model: return {{"graph", c.is_graph}, {"evaluates", c.evaluates}};
  }
  return {};
}

void print_capabilities(const ordered_json& all) {
  print_output("\ncapabilities\n");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : all.items()) {
    std::string key = name;
    for (char& ch : key)
      if (ch == '_') ch = ' ';
    std::string text = value.is_boolean()  ? (value.get<bool>() ? "yes" : "no")
                       : value.is_string() ? value.get<std::string>()
                                           : value.dump();
    if (value.is_array()) text = value.empty() ? "none" : join(value.get<std::vector<std::string>>());
    rows.push_back({key, text});
  }
  print_output(indented({{"property"}, {"value"}}, std::move(rows)));
}

// ----------------------------------------------------------------------------------------------------- network ---

ordered_json network_json(const network_summary& n) {
  ordered_json layers = ordered_json::array();
  for (const auto& l : n.layers)
    layers.push_back({{"name", l.name},
                      {"op", l.op},
                      {"shape", l.shape},
                      {"parameters", l.parameters},
                      {"operations_per_sample", l.operations}});
  ordered_json tables = ordered_json::array();
  for (const auto& t : n.tables) tables.push_back({{"name", t.name}, {"rows", t.rows}, {"parameters", t.parameters}});
  return {{"unit", n.unit},   {"parameters", n.parameters},
          {"state", n.state}, {"operations_per_sample", n.operations},
          {"tables", tables}, {"layers", layers}};
}

// Returns the number with commas: 15254602 becomes "15,254,602".
std::string grouped(std::uint64_t n) {
  auto text = std::to_string(n);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string operations_text(double n) {
  if (n == 0) return "-";
  const char* const prefix[] = {"", " k", " M", " G", " T", " P"};
  std::size_t i = 0;
  for (; n >= 1000 && i + 1 < std::size(prefix); ++i) n /= 1000;
  return fmt::format("{:.4g}{}", n, prefix[i]);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::vector<std::string> dims;
  for (auto d : shape) dims.push_back(std::to_string(d));
  return dims.empty() ? "1" : join(dims, "x");
}

void print_layers(const network_summary& n) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& l : n.layers)
    rows.push_back(
        {l.name, l.op, shape_text(l.shape), l.parameters ? grouped(l.parameters) : "-", operations_text(l.operations)});
  rows.push_back({"total", "", "", grouped(n.parameters), operations_text(n.operations)});
  print_output(fmt::format(
      "\nlayers (output of a sample; operations per sample, forward and backward)\n{}",
      indented({{"layer"}, {"op"}, {"output"}, {"parameters", true}, {"operations", true}}, std::move(rows))));
}

void print_network(const network_summary& n) {
  if (n.layers.empty())
    print_output(fmt::format("\n{} parameters; operations per sample, forward and backward: {}\n",
                             grouped(n.parameters), operations_text(n.operations)));
  else
    print_layers(n);
  for (const auto& t : n.tables)
    print_output(fmt::format("  of them {} in the sparse table \"{}\": {} rows of {}\n", grouped(t.parameters), t.name,
                             grouped(t.rows), t.parameters / t.rows));
  if (n.state) print_output(fmt::format("  and {} elements of state, without gradients\n", grouped(n.state)));
}

// ------------------------------------------------------------------------------------- answers from a child process
// ---

ordered_json asked_for_capabilities(const registry& plugins, const component& c, const chosen_values& chosen) {
  const auto text = run_in_child([&](const stage_function& stage) -> nlohmann::json {
    return capabilities(plugins.loading(), c, chosen, stage).dump(); // as text: nlohmann::json would sort the keys
  });
  return ordered_json::parse(text.get_ref<const std::string&>());
}

network_summary asked_for_network(const registry& plugins, const component& c, const chosen_values& chosen) {
  return run_in_child([&](const stage_function& stage) -> nlohmann::json {
           return summarise(plugins.loading(), c.id, chosen, stage);
         })
      .get<network_summary>();
}

} // namespace

ordered_json abilities_of(const registry& plugins, const component& c, const chosen_values& chosen) {
  ordered_json all{{"capabilities", ordered_json::object()}};
  try {
    all["capabilities"] = asked_for_capabilities(plugins, c, chosen);
    if (c.kind == kind::model) all["network"] = network_json(asked_for_network(plugins, c, chosen));
  } catch (const failure& f) {
    all["unavailable"] = one_line(f.what());
  }
  return all;
}

int describe_verb(const std::vector<std::filesystem::path>& folders, const std::string& name, bool as_json,
                  const std::vector<std::string>& set) {
  const registry plugins(folders);
  const auto& c = find(plugins, name);
  const auto chosen = read_set(set);

  // Capabilities and network need an instance. They are left out if a parameter without default was not given; then
  // `unknown` tells the user to give it.
  std::string unknown;
  ordered_json can = ordered_json::object();
  std::optional<network_summary> network;
  for (const auto& p : c.parameters)
    if (!p.default_value && !chosen.contains(p.name)) unknown = fmt::format("give --set {}=...", p.name);
  std::string unavailable; // why it cannot run on this machine
  if (unknown.empty()) {
    (void)parameter_values(c, chosen); // throws failure (usage) if a value is wrong
    try {
      can = asked_for_capabilities(plugins, c, chosen);
    } catch (const failure& f) {
      if (f.code() != exit_code::skipped) throw;
      unavailable = f.what();
    }
    if (c.kind == kind::model) network = asked_for_network(plugins, c, chosen);
  }

  if (as_json) {
    ordered_json out{{"kind", name_of(c.kind)},
                     {"id", c.id},
                     {"summary", c.summary},
                     {"plugin", c.plugin_name},
                     {"version", c.plugin_version},
                     {"file", c.file.string()},
                     {"parameters", ordered_json::array()},
                     {"capabilities", can}};
    for (const auto& p : c.parameters) out["parameters"].push_back(parameter_json(p));
    if (!unavailable.empty()) out["unavailable"] = unavailable;
    if (network) out["network"] = network_json(*network);
    print_output(document_text(out));
    return 0;
  }
  print_output(fmt::format("{} {}: {}\n{} {}, {}\n", name_of(c.kind), c.id, c.summary, c.plugin_name, c.plugin_version,
                           c.file.string()));
  print_parameters(c);
  if (!unknown.empty())
    print_output(fmt::format("\ncapabilities depend on a parameter that must be given: {}\n", unknown));
  if (!unavailable.empty())
    print_output(fmt::format("\nit cannot run on this machine: {}\n", unavailable));
  else if (unknown.empty())
    print_capabilities(can);
  if (network) print_network(*network);
  return 0;
}

} // namespace regatta

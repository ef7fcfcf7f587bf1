// SPDX-License-Identifier: Apache-2.0
#include "cli/preflight.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/failure.hpp"
#include "base/json.hpp"
#include "campaign/prepare.hpp"
#include "cli/comm_launch.hpp"
#include "cli/launcher_ranks.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/standard_output.hpp"
#include "comm/device_checks.hpp"
#include "comm/preflight.hpp"
#include "join/start.hpp"
#include "launch/cpus.hpp"
#include "launch/host_link.hpp"
#include "machine/host.hpp"
#include "network/interfaces.hpp"
#include "report/context.hpp"
#include "report/render.hpp"
#include "results/case_entry.hpp"

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::uint64_t large_bytes = 1 << 20;
constexpr const char* transport = "tcp";

// Returns the files of all plugins that can be loaded.
std::vector<std::string> plugin_files(const registry& plugins) {
  std::vector<std::string> files;
  for (const component& c : plugins.components())
    if (std::ranges::find(files, c.file.string()) == files.end()) files.push_back(c.file.string());
  return files;
}

std::vector<comm::host_facts> facts_of(launched_hosts* launcher, const registry& plugins) {
  if (!launcher) {
    const json host = describe_host(cgroup_cpu_limit());
    return {{host.value("name", json("this host")).get<std::string>(), host, nullptr, nullptr}};
  }
  const auto files = plugin_files(plugins);
  const auto sums = launcher->file_sums(files, files);
  std::vector<comm::host_facts> facts;
  for (std::size_t h = 0; h < launcher->hosts().size(); ++h)
    facts.push_back({launcher->hosts()[h]->name, launcher->descriptions()[h], launcher->programs()[h], sums[h]});
  return facts;
}

} // namespace

int preflight_verb(const preflight_options& o) {
  const auto form = format_named(o.format);
  if (!form || (*form != format::console && *form != format::markdown && *form != format::json))
    throw failure(exit_code::usage, fmt::format("--format {}: expected console, markdown or json", o.format));
  // Does not return in the launcher's own processes. Different programs are a finding.
  const auto launcher = start_under_launcher(make_launcher_request_handlers(), true);
  const registry plugins(plugin_folders(o.plugin_path));
  const auto facts = facts_of(launcher.get(), plugins);
  comm::plan p;
  p.transport = transport;
  p.files = files_of_transport(plugins, {transport, {}});
  p.ranks = static_cast<std::uint32_t>(facts.size());
  p.counts = {8 / sizeof(float), large_bytes / sizeof(float)};
  p.pairs = comm::preflight_pairs(p.ranks);
  p.devices = comm::executors_of_devices(plugins);
  const auto addresses = launcher ? launcher->addresses(o.interface)
                                  : std::vector<std::vector<std::string>>{addresses_of_interfaces(o.interface)};
  std::vector<std::string> warnings;
  if (auto w = build_warning()) warnings.push_back(*w);
  // Ranks are not pinned: their threads measure all CPUs.
  const comm_launch_options how{.timeout = o.timeout, .log = o.log, .pin = false, .one_per_host = true};
  const comm_outcome run = launch_comm(p, how, launcher.get(), addresses, warnings);
  json descriptions = json::array();
  for (const comm::host_facts& f : facts) descriptions.push_back(f.description);
  json document = comm::preflight_of(run.plan, facts, run.results);
  document["schema"] = "regatta.preflight/1";
  document["context"] = make_context(o.command, descriptions, json::array(), warnings);
  print_output(*form == format::json ? document_text(document)
                                     : comm::preflight_text(document, *form == format::markdown));
  return static_cast<int>(document.at("suspects").empty() ? exit_code::done : exit_code::gate);
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/devices.hpp"
#include "cli/indented_table.hpp"
#include "cli/list.hpp"
#include "cli/machine.hpp"
#include "cli/standard_output.hpp"
#include "join/environment.hpp"
#include "launch/cpus.hpp"
#include "machine/core_independence.hpp"
#include "machine/host.hpp"
#include "registry/registry.hpp"
#include "report/rounded.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <sys/resource.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::ordered_json;

ordered_json limit(int which) {
  rlimit l{};
  if (getrlimit(static_cast<__rlimit_resource_t>(which), &l) != 0) return nullptr;
  return l.rlim_cur == RLIM_INFINITY ? ordered_json("unlimited") : ordered_json(static_cast<std::uint64_t>(l.rlim_cur));
}

ordered_json limits() {
  return {{"open_files", limit(RLIMIT_NOFILE)},
          {"locked_memory_bytes", limit(RLIMIT_MEMLOCK)},
          {"processes", limit(RLIMIT_NPROC)}};
}

// Returns the devices of this machine as reported by the executors that list devices.
ordered_json devices(const registry& plugins) {
  ordered_json list = ordered_json::array();
  for (const component& c : plugins.components()) {
    if (c.has_devices) list.push_back(devices_of(plugins, c));
  }
  return list;
}

ordered_json diagnosis(const registry& plugins, const std::vector<std::filesystem::path>& folders) {
  ordered_json counts = ordered_json::object(), searched = ordered_json::array(), unusable = ordered_json::array();
  for (auto k : {kind::model, kind::executor, kind::transport, kind::strategy})
    counts[plural_of(k)] = std::count_if(plugins.components().begin(), plugins.components().end(),
                                         [&](const component& c) { return c.kind == k; });
  for (const auto& f : folders) searched.push_back(f.string());
  for (const auto& f : plugins.failures()) unusable.push_back({{"file", f.file.string()}, {"reason", f.reason}});
  return {
      {"machine", describe_machine()},
      {"limits", limits()},
      {"launcher", launcher_line(process_environment())},
      {"plugins", {{"searched", searched}, {"found", counts}, {"unusable", unusable}, {"left_out", left_out(folders)}}},
      {"devices", devices(plugins)}};
}

std::string text_of(const ordered_json& value) {
  return value.is_null() ? "unknown" : value.is_string() ? value.get<std::string>() : value.dump();
}

std::string bytes_text(const ordered_json& value) {
  return value.is_number() ? human_bytes(value.get<double>()) : text_of(value);
}

std::string independence_of(const ordered_json& c) {
  if (!c.is_object()) return "unknown";
  return fmt::format("CPUs {} and {}: {}", text_of(c["cpus"][0]), text_of(c["cpus"][1]), independence_text(c));
}

std::string line_of(const ordered_json& c) {
  if (!c.is_object() || !c["line_round_trip_seconds"].is_number()) return "unknown";
  return human_seconds(c["line_round_trip_seconds"].get<double>());
}

// Prints a part of the report: a title, and lines of a name and a value.
void print(const std::string& title, std::vector<std::vector<std::string>> rows) {
  print_output(fmt::format("{}\n{}\n", title, indented({{"property"}, {"value"}}, std::move(rows))));
}

void print(const ordered_json& d) {
  const ordered_json& m = d["machine"];
  print("machine", {{"name", text_of(m["name"])},
                    {"cpu", text_of(m["cpu"])},
                    {"instruction set", text_of(m["isa"])},
                    {"cores", text_of(m["cores"])},
                    {"two cores in parallel", independence_of(m["core_independence"])},
                    {"cache line round trip", line_of(m["core_independence"])},
                    {"CPU quota in cores", m["cgroup_cpus"].is_null() ? "all" : text_of(m["cgroup_cpus"])},
                    {"memory", bytes_text(m["memory_bytes"])},
                    {"frequency governor", text_of(m["governor"])},
                    {"kernel", text_of(m["kernel"])}});
  const ordered_json& l = d["limits"];
  print("limits", {{"open files", text_of(l["open_files"])},
                   {"locked memory", bytes_text(l["locked_memory_bytes"])},
                   {"processes", text_of(l["processes"])}});
  print("launch", {{"launcher", text_of(d["launcher"])}});
  const ordered_json& p = d["plugins"];
  std::vector<std::vector<std::string>> rows;
  for (const auto& [kind, count] : p["found"].items()) rows.push_back({kind, count.dump()});
  for (const auto& folder : p["searched"]) rows.push_back({"searched", text_of(folder)});
  for (const auto& line : p["left_out"]) rows.push_back({"left out of this build", text_of(line)});
  for (const auto& u : p["unusable"]) rows.push_back({"not usable", text_of(u["file"]) + ": " + text_of(u["reason"])});
  print("plugins", std::move(rows));
  rows.clear();
  for (const auto& gpu : m["gpus"]) rows.push_back({"NVIDIA driver", text_of(gpu)});
  for (const auto& e : d["devices"]) {
    const std::string name = "executor " + text_of(e["executor"]);
    for (const auto& device : e["devices"]) rows.push_back({name, text_of(device)});
    for (std::size_t a = 0; a < e["topology"].size(); ++a) {
      std::string line;
      for (const auto& way : e["topology"][a]) line += (line.empty() ? "" : "; ") + text_of(way);
      rows.push_back({fmt::format("GPU {} to each", a), line});
    }
    if (!e["error"].is_null()) rows.push_back({"not usable", text_of(e["error"])});
  }
  if (rows.empty()) rows.push_back({"", "none but the CPU"});
  print("devices", std::move(rows));
  rows.clear();
  for (const auto& i : m["interfaces"]) {
    const ordered_json& speed = i["bits_per_second"];
    rows.push_back(
        {text_of(i["name"]),
         fmt::format("{}, MTU {}",
                     speed.is_null() ? "speed unknown" : fmt::format("{:g} Gbit/s", speed.get<double>() * 1e-9),
                     text_of(i["mtu"]))});
  }
  print("network", std::move(rows));
}

} // namespace

int doctor_verb(const std::vector<std::filesystem::path>& folders, bool as_json) {
  const registry plugins(folders);
  const ordered_json d = diagnosis(plugins, folders);
  if (as_json)
    print_output(document_text(d));
  else
    print(d);
  return static_cast<int>(plugins.failures().empty() ? exit_code::done : exit_code::plugin);
}

} // namespace regatta

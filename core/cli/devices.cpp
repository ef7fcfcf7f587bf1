// SPDX-License-Identifier: Apache-2.0
#include "cli/devices.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "cli/topology.hpp"
#include "registry/plugin_host.hpp"
#include "registry/run_in_child.hpp"

#include <array>

#include <fmt/format.h>
#include <regatta/ext/device.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

using nlohmann::json;

// Runs in the child process.
json ask_executor(const registry& plugins, const std::string& id, const stage_function& stage) {
  const std::string name = "executor " + id;
  const auto who = fmt::format("{} ({})", name, plugins.described(kind::executor, id).file.string());
  stage(who, "was being loaded");
  const component& c = plugins.find(kind::executor, id);
  const void* const table = c.extension ? c.extension(RG_EXT_DEVICES) : nullptr;
  json found = json::array();
  if (!table) return {{"devices", found}, {"topology", nullptr}};
  stage(who, "listed its devices");
  const rg_devices d = rg::copy_versioned(*static_cast<const rg_devices*>(table));
  plugin_host host;
  std::uint32_t count = 0;
  call(host, name, [&] { return d.count(host.c(), &count); });
  for (std::uint32_t i = 0; i < count; ++i) {
    std::array<char, 256> text{};
    call(host, name, [&] { return d.describe(host.c(), i, text.data(), text.size()); });
    text.back() = 0;
    found.push_back(one_line(text.data()));
  }
  stage(who, "described how its devices are connected");
  return {{"devices", found}, {"topology", topology_of(d, name)}};
}

} // namespace

nlohmann::ordered_json devices_of(const registry& plugins, const component& executor) {
  json said = {{"devices", json::array()}, {"topology", nullptr}};
  nlohmann::ordered_json error;
  try {
    said =
        run_in_child([&](const stage_function& stage) { return ask_executor(plugins.loading(), executor.id, stage); });
  } catch (const failure& f) {
    error = f.what();
  }
  return {
      {"executor", executor.id}, {"devices", said.at("devices")}, {"topology", said.at("topology")}, {"error", error}};
}

} // namespace regatta

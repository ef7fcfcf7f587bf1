// SPDX-License-Identifier: Apache-2.0
#include "cli/topology.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "registry/plugin_host.hpp"

#include <array>
#include <cstdint>

#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

namespace regatta {

nlohmann::json topology_of(const rg_devices& devices, const std::string& name) {
  const rg_devices d = rg::copy_versioned(devices);
  plugin_host host;
  std::uint32_t count = 0;
  if (!d.topology || rg::fence(host.c(), [&] { return d.count(host.c(), &count); }) < 0) return nullptr;
  nlohmann::json rows = nlohmann::json::array();
  bool any = false;
  for (std::uint32_t a = 0; a < count; ++a) {
    nlohmann::json& row = rows.emplace_back(nlohmann::json::array());
    for (std::uint32_t b = 0; b < count; ++b) {
      std::array<char, 256> text{};
      try {
        call(host, name, [&] { return d.topology(host.c(), a, b, text.data(), text.size()); });
      } catch (const failure&) { // not known, for example because NVML is missing
        text = {};
      }
      const std::string line = one_line(text.data());
      any = any || !line.empty();
      row.push_back(line.empty() ? nlohmann::json() : nlohmann::json(line));
    }
  }
  return any ? rows : nlohmann::json(nullptr);
}

} // namespace regatta

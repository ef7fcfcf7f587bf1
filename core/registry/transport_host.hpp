// SPDX-License-Identifier: Apache-2.0
//
// What the engine hands a transport: the host of every plugin, and the means to be made of other transports.
#pragma once

#include "registry/ask.hpp"
#include "registry/plugin_host.hpp"
#include "registry/registry.hpp"

#include <map>
#include <string>
#include <vector>

namespace regatta {

class transport_host : public plugin_host {
public:
  // `plugins` outlives this. `more` is asked for extensions other than "regatta.nest/1".
  explicit transport_host(const registry& plugins, log_function log = {}, extension_function more = {});

  // The files of the transports that were opened through this host. [main]
  const std::vector<std::string>& nested_files() const noexcept { return nested_files_; }

private:
  rg_status open(const char* id, rg_nested& out);

  const registry& plugins_;
  rg_nest nest_;
  std::vector<std::string> nested_files_;
};

// What a transport says of itself, asked of an instance that connects nobody.
struct transport_summary {
  rg_transport_caps caps;
  bool regions, collectives;      // whether it has these extensions
  std::vector<std::string> files; // of the plugins that it needs: its own, and those of transports inside it
};

// Makes an instance and ends it. `plugins` loads what find() returns. Throws failure with the plugin's text, or where
// it contradicts itself. [main]
transport_summary summarise_transport(const registry& plugins, const std::string& id,
                                      const std::map<std::string, nlohmann::json>& parameters,
                                      const stage_function& stage);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// What the engine hands a transport: the host of every plugin, and the means to be made of other transports.
#pragma once

#include "registry/plugin_host.hpp"
#include "registry/registry.hpp"

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

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The host that the engine passes to a transport: a plugin_host from which a transport can also open other transports.
#pragma once

#include "registry/plugin_host.hpp"
#include "registry/registry.hpp"
#include "registry/run_in_child.hpp"

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include <regatta/ext/nest.h>

namespace regatta {

class transport_host : public plugin_host {
public:
  // `plugins` must outlive this object. Its find() must load the file of the component that it returns (a registry of
  // registry::loading(), or one with trust::tried), because a transport that opens another one calls that one's
  // functions. `more` returns extensions other than "regatta.nest/1", or null for an id that it does not have; it may
  // be empty.
  explicit transport_host(const registry& plugins, log_function log = {}, extension_function more = {});

  // Returns the ids of the transports that a transport has opened through this host so far. [main]
  const std::vector<std::string>& nested() const noexcept { return nested_; }

private:
  rg_status open(const char* id, rg_nested& out);

  const registry& plugins_;
  rg_nest nest_;
  std::atomic<rg_region> last_region_ = UINT32_MAX; // the engine counts its regions from 1 upwards
  std::vector<std::string> nested_;
};

// Properties of a transport, read from an instance that never connects.
struct transport_summary {
  rg_transport_caps caps;
  std::string device;                  // caps.device, kept when the plugin is gone; empty: any kind of device
  std::vector<std::string> extensions; // ids of the extensions that an instance has, in alphabetical order
  bool collectives;                    // whether it offers an all-reduce that sums RG_F32
  std::vector<std::string> transports; // ids: those that it has opened, and its own, which is the last one
};

// Creates an instance with these parameters (others have their defaults), reads its properties and destroys it. Calls
// `stage` before each use of plugin code. Requires that plugins.find() loads the file of the component that it
// returns; call it in a process that may crash, such as a child of run_in_child(). Throws failure: usage if a parameter
// is wrong; plugin if there is no such transport, its file cannot be loaded or its properties are invalid; if a call of
// the plugin fails, with the plugin's text and the exit code of its status. [main]
transport_summary summarise_transport(const registry& plugins, const std::string& id,
                                      const std::map<std::string, nlohmann::json>& parameters,
                                      const stage_function& stage);

} // namespace regatta

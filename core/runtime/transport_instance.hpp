// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/plugin_host.hpp"

#include <string>

#include <regatta/abi.h>

namespace regatta {

// A connected instance of a transport, as its user sees it. The pointers belong to the instance's owner.
struct transport_instance {
  std::string id;
  const rg_transport* functions;
  void* self;
  rg_transport_caps caps;
  plugin_host* host; // has the text of the instance's last failure
};

} // namespace regatta

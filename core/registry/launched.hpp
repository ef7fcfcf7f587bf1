// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <regatta/launched.h>

namespace regatta {

// How a process joins the others that an outside launcher has started; null where component::launcher is empty.
// Requires a component with functions.
inline const rg_launched* launched_of(const component& c) {
  return c.extension ? static_cast<const rg_launched*>(c.extension(RG_EXT_LAUNCHED)) : nullptr;
}

} // namespace regatta

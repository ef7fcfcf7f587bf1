// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <regatta/launched.h>

namespace regatta {

// Returns the functions by which a process of a launcher (mpirun, srun) joins the others; null if component::launcher
// is empty. Requires a component from a registry that loads.
inline const rg_launched* launched_of(const component& c) {
  return c.extension ? static_cast<const rg_launched*>(c.extension(RG_EXT_LAUNCHED)) : nullptr;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/registry.hpp"

#include <regatta/launched.h>

namespace regatta {

// What a transport says that runs only among processes which an outside launcher has started; null: any ranks do.
inline const rg_launched* launched_of(const component& c) {
  return c.extension ? static_cast<const rg_launched*>(c.extension(RG_EXT_LAUNCHED)) : nullptr;
}

} // namespace regatta

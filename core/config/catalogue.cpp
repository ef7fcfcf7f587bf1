// SPDX-License-Identifier: Apache-2.0
#include "config/load.hpp"

namespace regatta {

catalogue catalogue_of(const registry& r) {
  catalogue c;
  c.ids = [&r](kind k) {
    std::vector<std::string> ids;
    for (const component& one : r.components())
      if (one.kind == k) ids.push_back(one.id);
    return ids;
  };
  c.parameters = [&r](kind k, std::string_view id) -> const std::vector<rg_param>* {
    for (const component& one : r.components())
      if (one.kind == k && one.id == id) return &one.parameters;
    return nullptr;
  };
  for (const unusable& u : r.failures()) c.unusable.push_back(u.file.string() + ": " + u.reason);
  return c;
}

} // namespace regatta

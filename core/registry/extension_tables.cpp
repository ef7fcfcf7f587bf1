// SPDX-License-Identifier: Apache-2.0
#include "registry/extension_tables.hpp"

#include "base/failure.hpp"

#include <fmt/format.h>
#include <regatta/ext/cancel.h>
#include <regatta/ext/collectives.h>
#include <regatta/ext/counters.h>
#include <regatta/ext/one_sided.h>
#include <regatta/ext/regions.h>
#include <regatta/ext/wait.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

void require_table(const std::string& what, const rg_cancel& t) {
  require_functions(what, {{"cancel", t.cancel}});
}
void require_table(const std::string& what, const rg_collectives& t) {
  require_functions(what, {{"split", t.split}, {"offers", t.offers}, {"begin", t.begin}});
}
void require_table(const std::string& what, const rg_own_counters& t) {
  require_functions(what, {{"read", t.read}});
}
void require_table(const std::string& what, const rg_one_sided& t) {
  require_functions(what, {{"expose", t.expose}, {"put", t.put}, {"get", t.get}});
}
void require_table(const std::string& what, const rg_regions& t) {
  if (t.allocate || t.add) require_functions(what, {{"remove", t.remove}});
}
void require_table(const std::string& what, const rg_wait& t) {
  require_functions(what, {{"arm", t.arm}});
}

} // namespace

void require_functions(const std::string& what, std::initializer_list<std::pair<const char*, bool>> functions) {
  for (const auto& [name, there] : functions)
    if (!there)
      throw failure(
          exit_code::plugin,
          fmt::format("{}: the function {} is missing (null), which every component of this kind needs", what, name));
}

std::vector<const char*> checked_extensions(const rg_transport& functions, void* self, const std::string& what) {
  std::vector<const char*> offered;
  if (!functions.extension) return offered;
  const auto check = [&]<class T>(const char* id, const T*) {
    const auto* table = static_cast<const T*>(functions.extension(self, id));
    if (!table) return;
    require_table(what + ", extension " + id, rg::copy_versioned(*table));
    offered.push_back(id);
  };
  check(RG_EXT_CANCEL, static_cast<const rg_cancel*>(nullptr));
  check(RG_EXT_COLLECTIVES, static_cast<const rg_collectives*>(nullptr));
  check(RG_EXT_COUNTERS, static_cast<const rg_own_counters*>(nullptr));
  check(RG_EXT_ONE_SIDED, static_cast<const rg_one_sided*>(nullptr));
  check(RG_EXT_REGIONS, static_cast<const rg_regions*>(nullptr));
  check(RG_EXT_WAIT, static_cast<const rg_wait*>(nullptr));
  return offered;
}

} // namespace regatta

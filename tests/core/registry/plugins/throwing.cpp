// SPDX-License-Identifier: Apache-2.0
//
// Plugins that throw where nothing may leave: in a static constructor, the entry, or create; chosen with -DDEFECT_....
#include <regatta/ext/graph.h>
#include <regatta/plugin.hpp>

#include <stdexcept>

namespace {

#if defined(DEFECT_throw_in_constructor)
struct start {
  start() { throw std::runtime_error("no licence\nwas found"); }
} at_load;
#endif

rg_status create(const rg_host*, const rg_value*, void**) {
  throw std::runtime_error("create gave up");
}
void destroy(void*) {}

rg_status plan(const rg_host*, const rg_value*, const rg_cluster*, rg_plan*) {
  throw std::runtime_error("plan gave up");
}
std::uint32_t talks(const rg_value*, const rg_cluster*, std::uint32_t, std::uint32_t) {
  return 0;
}
rg_status create_strategy(const rg_strategy_host*, const rg_value*, void**) {
  return RG_OK;
}
rg_status completed(void*, const rg_completion*, std::uint32_t) {
  return RG_OK;
}

rg_graph_source source = {sizeof(rg_graph_source), create, destroy, [](void*) -> const rg_graph* { return nullptr; }};
const void* extension(const char*) {
  return &source;
}

rg_strategy strategy_functions() {
  auto s = rg::make_versioned<rg_strategy>();
  s.plan = plan;
  s.talks = talks;
  s.create = create_strategy;
  s.destroy = destroy;
  s.completed = completed;
  return s;
}
const rg_strategy functions = strategy_functions();

const rg_component model = {
    sizeof(rg_component), RG_KIND_MODEL, "thrower", "its create throws", nullptr, 0, nullptr, extension};
const rg_component strategy = {sizeof(rg_component), RG_KIND_STRATEGY, "thrower", "its plan throws", nullptr, 0,
                               &functions,           nullptr};
const rg_component* const components[] = {&model, &strategy};
const rg_plugin plugin = {sizeof(rg_plugin), RG_ABI_MAJOR, RG_ABI_MINOR, "thrower", "1", components, 2};

} // namespace

extern "C" RG_EXPORT const rg_plugin* regatta_plugin(const rg_host*) {
#if defined(DEFECT_throw_in_entry)
  throw std::runtime_error("entry gave up");
#endif
  return &plugin;
}

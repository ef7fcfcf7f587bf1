/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports more than the entry symbol, and stays loaded once it was (the linker's -z nodelete). */
#include <regatta/abi.h>

RG_EXPORT int helper_of_mine(void) {
  return 1;
}

static rg_status plan(const rg_host* host, const rg_value* values, const rg_cluster* cluster, rg_plan* out) {
  (void)host, (void)values, (void)cluster;
  out->lanes = 1;
  return RG_OK;
}
static uint32_t talks(const rg_value* values, const rg_cluster* cluster, uint32_t a, uint32_t b) {
  (void)values, (void)cluster, (void)a, (void)b;
  return 0;
}
static rg_status create(const rg_strategy_host* host, const rg_value* values, void** self) {
  (void)host, (void)values;
  static int nothing;
  *self = &nothing;
  return RG_OK;
}
static void destroy(void* self) {
  (void)self;
}
static rg_status completed(void* self, const rg_completion* completions, uint32_t count) {
  (void)self, (void)completions, (void)count;
  return RG_OK;
}

static const rg_strategy functions = {.struct_size = sizeof(rg_strategy),
                                      .plan = plan,
                                      .talks = talks,
                                      .create = create,
                                      .destroy = destroy,
                                      .completed = completed};
static const rg_component idle = {.struct_size = sizeof(rg_component),
                                  .kind = RG_KIND_STRATEGY,
                                  .id = "idle",
                                  .summary = "broken: more symbols than one",
                                  .functions = &functions};
static const rg_component* const components[] = {&idle};
static const rg_plugin plugin = {.struct_size = sizeof(rg_plugin),
                                 .abi_major = RG_ABI_MAJOR,
                                 .abi_minor = RG_ABI_MINOR,
                                 .name = "broken_exports",
                                 .version = "1.0",
                                 .components = components,
                                 .component_count = 1};

RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
  (void)host;
  return &plugin;
}

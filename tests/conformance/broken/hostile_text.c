/* SPDX-License-Identifier: Apache-2.0
 *
 * A strategy that cannot plan. Its error, its version and its output hold markup, controls and bytes that are no
 * UTF-8. */
#include <regatta/abi.h>

#include <stdio.h>

#define HOSTILE "</pre></td><script>alert('x')</script>]]> & \"quoted\""

static rg_status plan(const rg_host* host, const rg_value* values, const rg_cluster* cluster, rg_plan* out) {
  (void)values, (void)cluster, (void)out;
  printf("printed " HOSTILE " \x1b[2J \x01 \xff \xef\xbf\xbe \xe2\x80\xae\nsecond line\n");
  fprintf(stderr, "complained\n");
  return host->fail(host->context, RG_E_OPERATION, "said " HOSTILE " \x1b[2J \x01 \xff \xef\xbf\xbe");
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
static const rg_component hostile = {.struct_size = sizeof(rg_component),
                                     .kind = RG_KIND_STRATEGY,
                                     .id = "hostile_text",
                                     .summary = "broken: " HOSTILE,
                                     .functions = &functions};
static const rg_component* const components[] = {&hostile};
static const rg_plugin plugin = {.struct_size = sizeof(rg_plugin),
                                 .abi_major = RG_ABI_MAJOR,
                                 .abi_minor = RG_ABI_MINOR,
                                 .name = "broken_hostile_text",
                                 .version = HOSTILE,
                                 .components = components,
                                 .component_count = 1};

RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
  (void)host;
  return &plugin;
}

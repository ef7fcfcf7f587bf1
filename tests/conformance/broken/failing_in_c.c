/* SPDX-License-Identifier: Apache-2.0
 *
 * A strategy in C that ends an activity with an error within the call that begins it, or ends one that never began. */
#include <regatta/abi.h>

#include <stdlib.h>
#include <string.h>

typedef struct instance {
  const rg_strategy_host* host;
  const char* how;
} instance;

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
  instance* i = calloc(1, sizeof *i);
  if (!i) return RG_E_OPERATION;
  i->host = host;
  i->how = values[0].s;
  *self = i;
  return RG_OK;
}
static void destroy(void* self) {
  free(self);
}
static rg_status end_step(void* self, uint64_t step, uint64_t activity) {
  const instance* i = self;
  const rg_host* host = i->host->host;
  (void)step;
  if (strcmp(i->how, "error") == 0) {
    i->host->done(i->host->context, activity, host->fail(host->context, RG_E_OPERATION, "the fabric said no"));
    return RG_OK;
  }
  i->host->done(i->host->context, activity, strcmp(i->how, "status 5") == 0 ? 5 : RG_OK);
  if (strcmp(i->how, "twice") == 0) i->host->done(i->host->context, activity, RG_OK);
  return RG_OK;
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
                                      .end_step = end_step,
                                      .completed = completed};
static const char* const ways[] = {"error", "status 5", "twice", NULL};
static const rg_param parameters[] = {{.struct_size = sizeof(rg_param),
                                       .type = RG_PARAM_STRING,
                                       .name = "how",
                                       .help = "how the activity ends",
                                       .default_value = "\"error\"",
                                       .choices = ways}};
static const rg_component fails = {.struct_size = sizeof(rg_component),
                                   .kind = RG_KIND_STRATEGY,
                                   .id = "fails_in_c",
                                   .summary = "broken: done() with an error within end_step",
                                   .params = parameters,
                                   .param_count = 1,
                                   .functions = &functions};
static const rg_component* const components[] = {&fails};
static const rg_plugin plugin = {.struct_size = sizeof(rg_plugin),
                                 .abi_major = RG_ABI_MAJOR,
                                 .abi_minor = RG_ABI_MINOR,
                                 .name = "broken_failing_in_c",
                                 .version = "1.0",
                                 .components = components,
                                 .component_count = 1};

RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
  (void)host;
  return &plugin;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * An executor that lacks every op. Its id comes before those of Regatta's own executors. */
#include <regatta/abi.h>

static rg_status compile(const rg_host* host, const rg_value* values, const rg_graph* graph,
                         const rg_model_setup* setup, void** model) {
  (void)values, (void)graph, (void)setup, (void)model;
  return host->fail(host->context, RG_E_UNSUPPORTED, "layer hidden1: no op dense");
}

static void destroy(void* self) {
  (void)self;
}
static rg_status describe(void* self, rg_model_info* info) {
  (void)self, (void)info;
  return RG_E_PLUGIN;
}
static rg_status init(void* self, uint32_t tensor, const uint64_t* rows, uint64_t row_count, uint64_t seed, void* out) {
  (void)self, (void)tensor, (void)rows, (void)row_count, (void)seed, (void)out;
  return RG_E_PLUGIN;
}
static rg_status bind(void* self, const rg_model_memory* memory) {
  (void)self, (void)memory;
  return RG_E_PLUGIN;
}
static rg_status step(void* self, const rg_batch* batch, const rg_hooks* hooks, rg_step_result* result) {
  (void)self, (void)batch, (void)hooks, (void)result;
  return RG_E_PLUGIN;
}

static const rg_model model = {.struct_size = sizeof(rg_model),
                               .destroy = destroy,
                               .describe = describe,
                               .init = init,
                               .bind = bind,
                               .step = step};
static const rg_executor executor = {
    .struct_size = sizeof(rg_executor), .memory = RG_MEMORY_HOST, .compile = compile, .model = &model};
static const rg_component component = {.struct_size = sizeof(rg_component),
                                       .kind = RG_KIND_EXECUTOR,
                                       .id = "a_picky_one",
                                       .summary = "test: lacks every op",
                                       .functions = &executor};
static const rg_component* const components[] = {&component};
static const rg_plugin plugin = {.struct_size = sizeof(rg_plugin),
                                 .abi_major = RG_ABI_MAJOR,
                                 .abi_minor = RG_ABI_MINOR,
                                 .name = "picky_executor",
                                 .version = "1",
                                 .components = components,
                                 .component_count = 1};

RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
  (void)host;
  return &plugin;
}

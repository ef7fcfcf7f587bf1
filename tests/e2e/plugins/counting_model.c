/* SPDX-License-Identifier: Apache-2.0
 *
 * A model that counts: its batches hold numbers from 0 to 9, it counts their sum and the odd ones. Its loss is what it
 * is told that the global batch counts, its metric the mean of the numbers it evaluates on. */
#include <regatta/abi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t numbers[] = {3}, weights[] = {4096};
static const rg_input input = {.struct_size = sizeof(rg_input),
                               .kind = RG_INPUT_INDEX,
                               .name = "label",
                               .type = RG_I32,
                               .ndim = 1,
                               .shape = numbers,
                               .range = 10};
static const rg_tensor tensor = {.struct_size = sizeof(rg_tensor),
                                 .kind = RG_TENSOR_DENSE,
                                 .name = "w",
                                 .type = RG_F32,
                                 .ndim = 1,
                                 .shape = weights};

typedef struct {
  uint64_t steps;
} counting;

static rg_status create(const rg_host* host, const rg_value* values, const rg_model_setup* setup, void** self) {
  (void)host, (void)values;
  // Notes each instance that is to time kernels itself.
  const char* const file = getenv("COUNTING_TIMED");
  FILE* const out = file && setup->kernels == RG_KERNELS_TIMED && !setup->kernel_choices ? fopen(file, "a") : NULL;
  if (out) fputc('t', out), fclose(out);
  *self = calloc(1, sizeof(counting));
  return *self ? RG_OK : RG_E_OPERATION;
}
static rg_status describe(void* self, rg_model_info* info) {
  (void)self;
  info->tensors = &tensor;
  info->tensor_count = 1;
  info->inputs = &input;
  info->input_count = 1;
  info->metric_sums = 2;
  info->metric = "mean";
  info->unit = "tokens";
  info->layout = "canonical";
  info->count_kinds = 2;
  return RG_OK;
}
static rg_status init(void* self, uint32_t t, const uint64_t* rows, uint64_t count, uint64_t seed, void* out) {
  (void)self, (void)t, (void)rows, (void)count, (void)seed;
  memset(out, 0, 4096 * sizeof(float));
  return RG_OK;
}
static rg_status bind(void* self, const rg_model_memory* memory) {
  (void)self, (void)memory;
  return RG_OK;
}
static rg_status count(void* self, const rg_batch* batch, uint64_t* counts) {
  const int32_t* values = batch->inputs[0];
  (void)self;
  for (uint64_t i = 0; i < 3 * batch->samples; ++i) {
    counts[0] += (uint64_t)values[i];
    counts[1] += values[i] % 2;
  }
  return RG_OK;
}
static rg_status step(void* self, const rg_batch* batch, const rg_hooks* hooks, rg_step_result* result) {
  (void)self;
  hooks->need(hooks->context, 0);
  if (!getenv("COUNTING_WITHOUT_PHASES")) hooks->backward(hooks->context);
  if (batch->flags & RG_BATCH_LAST) hooks->ready(hooks->context, 0);
  result->loss_sum = (double)batch->samples * (double)(100000 * batch->global_counts[1] + batch->global_counts[0]);
  result->count = batch->samples;
  return RG_OK;
}
static rg_status evaluate(void* self, const rg_batch* batch, double* sums) {
  const int32_t* values = batch->inputs[0];
  (void)self;
  for (uint64_t i = 0; i < 3 * batch->valid; ++i) sums[0] += values[i];
  sums[1] += 3 * (double)batch->valid;
  return RG_OK;
}
static rg_status metric(void* self, const double* sums, double* value) {
  (void)self;
  *value = sums[0] / sums[1];
  return RG_OK;
}

static const rg_model functions = {.struct_size = sizeof(rg_model),
                                   .create = create,
                                   .destroy = free,
                                   .describe = describe,
                                   .init = init,
                                   .bind = bind,
                                   .step = step,
                                   .evaluate = evaluate,
                                   .metric = metric,
                                   .count = count};
static const rg_component component = {.struct_size = sizeof(rg_component),
                                       .kind = RG_KIND_MODEL,
                                       .id = "counting",
                                       .summary = "counts what its batches hold",
                                       .functions = &functions};

RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
  static const rg_component* const components[] = {&component};
  static const rg_plugin plugin = {.struct_size = sizeof(rg_plugin),
                                   .abi_major = RG_ABI_MAJOR,
                                   .abi_minor = RG_ABI_MINOR,
                                   .name = "counting",
                                   .version = "1",
                                   .components = components,
                                   .component_count = 1};
  (void)host;
  return &plugin;
}

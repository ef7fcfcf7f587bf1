/* SPDX-License-Identifier: Apache-2.0
 *
 * The good plugin with one defect, chosen with -DDEFECT_...; the build makes a module of each. Everything that a defect
 * changes is a macro with a sound default. */
#include "minimal.h"

#include <regatta/ext/graph.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* -------------------------------------------------------------------------------------------------- the code --- */

#if defined(DEFECT_crash_in_constructor)
__attribute__((constructor)) static void start(void) {
  raise(SIGSEGV);
}
#elif defined(DEFECT_abort_in_constructor)
__attribute__((constructor)) static void start(void) {
  abort();
}
#elif defined(DEFECT_exit_in_constructor)
__attribute__((constructor)) static void start(void) {
  exit(0);
}
#elif defined(DEFECT_crash_in_destructor)
__attribute__((destructor)) static void end(void) {
  raise(SIGSEGV);
}
#elif defined(DEFECT_undefined_symbol)
void nobody_defines_this(void);
__attribute__((constructor)) static void start(void) {
  nobody_defines_this();
}
#endif

/* ------------------------------------------------------------------------------------------------ parameters --- */

#define PARAMETER .struct_size = sizeof(rg_param)
#define PARAMETER_COUNT COUNT_OF(parameters)
#define PARAMETERS parameters

#if defined(DEFECT_duplicate_parameter)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "depth", .default_value = "1"
#elif defined(DEFECT_parameter_without_name)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .default_value = "1"
#elif defined(DEFECT_parameter_named_oddly)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "Two words", .default_value = "1"
#elif defined(DEFECT_parameter_named_plugin)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "plugin", .default_value = "1"
#elif defined(DEFECT_parameter_named_like_id)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "bad", .default_value = "1"
#elif defined(DEFECT_parameter_named_like_other)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "good", .default_value = "1"
#elif defined(DEFECT_unknown_type)
#define SECOND PARAMETER, .type = 42, .name = "x", .default_value = "1"
#elif defined(DEFECT_default_malformed)
#define SECOND PARAMETER, .type = RG_PARAM_STRING, .name = "x", .default_value = "unquoted"
#elif defined(DEFECT_default_of_wrong_type)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "x", .default_value = "0.5"
#elif defined(DEFECT_default_out_of_range)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "x", .default_value = "11", .min = 1, .max = 10
#elif defined(DEFECT_default_out_of_range_in_list)
#define SECOND PARAMETER, .type = RG_PARAM_INTS, .name = "x", .default_value = "[1, 11]", .min = 1, .max = 10
#elif defined(DEFECT_default_not_among_choices)
static const char* const choices[] = {"a", "b", NULL};
#define SECOND PARAMETER, .type = RG_PARAM_STRING, .name = "x", .default_value = "\"c\"", .choices = choices
#elif defined(DEFECT_choice_twice)
static const char* const choices[] = {"a", "a", NULL};
#define SECOND PARAMETER, .type = RG_PARAM_STRING, .name = "x", .default_value = "\"a\"", .choices = choices
#elif defined(DEFECT_no_choice)
static const char* const choices[] = {NULL};
#define SECOND PARAMETER, .type = RG_PARAM_STRING, .name = "x", .choices = choices
#elif defined(DEFECT_choices_of_numbers)
static const char* const choices[] = {"1", NULL};
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "x", .default_value = "1", .choices = choices
#elif defined(DEFECT_min_above_max)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "x", .default_value = "1", .min = 2, .max = 1
#elif defined(DEFECT_bounds_of_string)
#define SECOND PARAMETER, .type = RG_PARAM_STRING, .name = "x", .default_value = "\"a\"", .min = 1, .max = 2
#elif defined(DEFECT_unit_of_string)
#define SECOND PARAMETER, .type = RG_PARAM_STRING, .unit = RG_UNIT_BYTES, .name = "x", .default_value = "\"a\""
#elif defined(DEFECT_unknown_unit)
#define SECOND PARAMETER, .type = RG_PARAM_INT, .unit = 42, .name = "x", .default_value = "1"
#elif defined(DEFECT_parameters_of_two_sizes)
#define SECOND .struct_size = sizeof(rg_param) - 8, .type = RG_PARAM_INT, .name = "x", .default_value = "1"
#else
#define SECOND PARAMETER, .type = RG_PARAM_INT, .name = "width", .default_value = "1"
#endif

#if defined(DEFECT_parameter_table_null)
#undef PARAMETERS
#define PARAMETERS NULL
#elif defined(DEFECT_parameter_count_absurd)
#undef PARAMETER_COUNT
#define PARAMETER_COUNT 4000000000u
#endif

static const rg_param parameters[] = {{PARAMETER, .type = RG_PARAM_INT, .name = "depth", .default_value = "4"},
                                      {SECOND}};

/* ------------------------------------------------------------------------------------------------ components --- */

#define KIND RG_KIND_TRANSPORT
#define ID "bad"
#define FUNCTIONS &functions
#define COMPONENT_SIZE sizeof(rg_component)

#if defined(DEFECT_null_slot)
static const rg_transport functions = {.struct_size = sizeof(rg_transport), MINIMAL_TRANSPORT, .poll = NULL};
#elif defined(DEFECT_slot_beyond_size)
static const rg_transport functions = {.struct_size = offsetof(rg_transport, counters), MINIMAL_TRANSPORT};
#elif defined(DEFECT_functions_without_size)
static const rg_transport functions = {.struct_size = 0, MINIMAL_TRANSPORT};
#elif defined(DEFECT_strategy_null_slot)
#undef KIND
#define KIND RG_KIND_STRATEGY
static const rg_strategy functions = {.struct_size = sizeof(rg_strategy)};
#elif defined(DEFECT_model_null_slot)
#undef KIND
#define KIND RG_KIND_MODEL
static const rg_model functions = {.struct_size = sizeof(rg_model)};
#elif defined(DEFECT_executor_without_model)
#undef KIND
#define KIND RG_KIND_EXECUTOR
static rg_status compile(const rg_host* host, const rg_value* values, const rg_graph* graph,
                         const rg_model_setup* setup, void** model) {
  (void)host, (void)values, (void)graph, (void)setup, (void)model;
  return RG_E_UNSUPPORTED;
}
static const rg_executor functions = {
    .struct_size = sizeof(rg_executor), .memory = RG_MEMORY_HOST, .compile = compile, .model = NULL};
#else
static const rg_transport functions = {.struct_size = sizeof(rg_transport), MINIMAL_TRANSPORT};
#endif

#if defined(DEFECT_null_functions)
#undef FUNCTIONS
#define FUNCTIONS NULL
#elif defined(DEFECT_model_without_anything)
#undef FUNCTIONS
#undef KIND
#define FUNCTIONS NULL
#define KIND RG_KIND_MODEL
#elif defined(DEFECT_wild_pointer)
#undef FUNCTIONS
#define FUNCTIONS ((const void*)8)
#elif defined(DEFECT_unknown_kind)
#undef KIND
#define KIND 42
#elif defined(DEFECT_null_id)
#undef ID
#define ID NULL
#elif defined(DEFECT_odd_id)
#undef ID
#define ID "Bad\nid"
#elif defined(DEFECT_component_size_absurd)
#undef COMPONENT_SIZE
#define COMPONENT_SIZE 0x7fffffff
#endif

#if defined(DEFECT_graph_null_slot)
#undef FUNCTIONS
#undef KIND
#define FUNCTIONS NULL
#define KIND RG_KIND_MODEL
static const void* extension(const char* id) {
  static const rg_graph_source source = {.struct_size = sizeof(rg_graph_source), .create = minimal_create};
  (void)id;
  return &source;
}
#define EXTENSION extension
#else
#define EXTENSION NULL
#endif

static const rg_component component = {.struct_size = COMPONENT_SIZE,
                                       .kind = KIND,
                                       .id = ID,
                                       .summary = "a transport with a defect",
                                       .params = PARAMETERS,
                                       .param_count = PARAMETER_COUNT,
                                       .functions = FUNCTIONS,
                                       .extension = EXTENSION};

#if defined(DEFECT_two_of_one_id)
static const rg_component* const components[] = {&component, &component};
#elif defined(DEFECT_null_component)
static const rg_component* const components[] = {&component, NULL};
#else
static const rg_component* const components[] = {&component};
#endif

/* ----------------------------------------------------------------------------------------------------- entry --- */

#define MAJOR RG_ABI_MAJOR
#define PLUGIN_SIZE sizeof(rg_plugin)
#define COMPONENT_COUNT COUNT_OF(components)
#if defined(DEFECT_wrong_major)
#undef MAJOR
#define MAJOR RG_ABI_MAJOR + 1
#elif defined(DEFECT_plugin_without_size)
#undef PLUGIN_SIZE
#define PLUGIN_SIZE 0
#elif defined(DEFECT_no_component)
#undef COMPONENT_COUNT
#define COMPONENT_COUNT 0
#endif

const rg_plugin plugin = {.struct_size = PLUGIN_SIZE,
                          .abi_major = MAJOR,
                          .abi_minor = RG_ABI_MINOR,
                          .name = "bad",
                          .version = "1",
                          .components = components,
                          .component_count = COMPONENT_COUNT};

#if !defined(DEFECT_no_entry)
RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
#if defined(DEFECT_null_description)
  return NULL;
#elif defined(DEFECT_null_description_with_text)
  host->fail(host->context, RG_E_UNSUPPORTED, "no such\ndevice");
  return NULL;
#elif defined(DEFECT_exit_in_entry)
  _exit(0);
#endif
  (void)host;
  return &plugin;
}
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A C99 plugin without a defect: one transport with a parameter of every type. */
#include "minimal.h"

static const rg_transport functions = {.struct_size = sizeof(rg_transport), MINIMAL_TRANSPORT};
static const char* const modes[] = {"eager", "rendezvous", NULL};

#define PARAMETER .struct_size = sizeof(rg_param)
static const rg_param parameters[] = {
    {PARAMETER, .type = RG_PARAM_BOOL, .name = "flag", .help = "a switch", .default_value = "true"},
    {PARAMETER, .type = RG_PARAM_INT, .name = "depth", .help = "messages", .default_value = "4", .min = 1, .max = 64},
    {PARAMETER, .type = RG_PARAM_INT, .unit = RG_UNIT_BYTES, .name = "chunk", .help = "", .default_value = "\"64KiB\""},
    {PARAMETER, .type = RG_PARAM_INT, .unit = RG_UNIT_NANOSECONDS, .name = "delay", .default_value = "50"},
    {PARAMETER, .type = RG_PARAM_FLOAT, .name = "share", .help = "of the rest", .default_value = "0.5", .max = 1},
    {PARAMETER, .type = RG_PARAM_FLOAT, .unit = RG_UNIT_BITS_PER_SECOND, .name = "rate", .default_value = "1e9"},
    {PARAMETER, .type = RG_PARAM_STRING, .name = "mode", .help = "how", .default_value = "\"eager\"", .choices = modes},
    {PARAMETER, .type = RG_PARAM_INTS, .name = "sizes", .help = "of layers", .default_value = "[1, 2]", .max = 9},
    {PARAMETER, .type = RG_PARAM_FLOATS, .name = "weights", .help = "of peers", .default_value = "[]"}};

static const rg_component component = {.struct_size = sizeof(rg_component),
                                       .kind = RG_KIND_TRANSPORT,
                                       .id = "good",
                                       .summary = "a transport in C99",
                                       .params = parameters,
                                       .param_count = COUNT_OF(parameters),
                                       .functions = &functions};
static const rg_component* const components[] = {&component};

ENTRY("good", components)

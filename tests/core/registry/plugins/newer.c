/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of a newer minor version: every struct is longer than ours, a component is of a kind that we do not know. */
#include "minimal.h"

#define LENGTHENED(type)                                                                                               \
  struct {                                                                                                             \
    type known;                                                                                                        \
    void* added[5];                                                                                                    \
  }
#define ADDED                                                                                                          \
  { &minimal_instance, &minimal_instance, &minimal_instance, &minimal_instance, &minimal_instance }

static const LENGTHENED(rg_transport) functions = {{.struct_size = sizeof functions, MINIMAL_TRANSPORT}, ADDED};

static const LENGTHENED(rg_param) parameters[] = {
    {{.struct_size = sizeof parameters[0], .type = RG_PARAM_INT, .name = "first", .default_value = "1"}, ADDED},
    {{.struct_size = sizeof parameters[0], .type = RG_PARAM_INT, .name = "second", .default_value = "2"}, ADDED}};

static const LENGTHENED(rg_component) transport = {{.struct_size = sizeof transport,
                                                    .kind = RG_KIND_TRANSPORT,
                                                    .id = "newer",
                                                    .summary = "a newer transport",
                                                    .params = &parameters[0].known,
                                                    .param_count = COUNT_OF(parameters),
                                                    .functions = &functions},
                                                   ADDED};
static const LENGTHENED(rg_component) unheard_of = {
    {.struct_size = sizeof unheard_of, .kind = 77, .id = "unheard_of", .functions = &functions}, ADDED};
static const rg_component* const components[] = {&unheard_of.known, &transport.known};

RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
  static const LENGTHENED(rg_plugin) plugin = {{.struct_size = sizeof plugin,
                                                .abi_major = RG_ABI_MAJOR,
                                                .abi_minor = RG_ABI_MINOR + 1,
                                                .name = "newer",
                                                .version = "2",
                                                .components = components,
                                                .component_count = COUNT_OF(components)},
                                               ADDED};
  (void)host;
  return &plugin.known;
}

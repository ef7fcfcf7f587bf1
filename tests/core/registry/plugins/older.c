/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of an older minor version: every struct ends earlier than ours. What lies behind it in memory is noise that
 * the engine must not take for members. */
#include "minimal.h"

#include <string.h>

/* `size` bytes of a struct, which says so, then noise. */
#define SHORTENED(type, name, size)                                                                                    \
  static union {                                                                                                       \
    type whole;                                                                                                        \
    unsigned char bytes[sizeof(type) + 64];                                                                            \
  } name;                                                                                                              \
  enum { name##_size = (size) }

SHORTENED(rg_transport, functions, offsetof(rg_transport, now));
SHORTENED(rg_component, component, offsetof(rg_component, extension));
SHORTENED(rg_plugin, plugin, sizeof(rg_plugin));
enum { parameter_size = offsetof(rg_param, choices) }; /* and that is the stride */
static unsigned char parameters[2 * parameter_size + 64];
static const rg_component* components[1];

static void shorten(void* at, uint32_t size) {
  memset((unsigned char*)at + size, 0xa5, 32);
  memcpy(at, &size, sizeof size);
}

static void put_parameter(unsigned char* at, const char* name, const char* value) {
  rg_param p = {.type = RG_PARAM_INT, .name = name, .help = "", .default_value = value, .min = 0, .max = 9};
  p.struct_size = parameter_size;
  memcpy(at, &p, parameter_size);
}

RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
  const rg_transport transport = {MINIMAL_TRANSPORT};
  (void)host;
  functions.whole = transport;
  shorten(&functions, functions_size);
  memset(parameters, 0xa5, sizeof parameters);
  put_parameter(parameters, "first", "1");
  put_parameter(parameters + parameter_size, "second", "2");
  component.whole.kind = RG_KIND_TRANSPORT;
  component.whole.id = "older";
  component.whole.summary = "an older transport";
  component.whole.params = (const rg_param*)(const void*)parameters;
  component.whole.param_count = 2;
  component.whole.functions = &functions;
  shorten(&component, component_size);
  components[0] = &component.whole;
  plugin.whole.abi_major = RG_ABI_MAJOR;
  plugin.whole.name = "older";
  plugin.whole.version = "0.9";
  plugin.whole.components = components;
  plugin.whole.component_count = 1;
  shorten(&plugin, plugin_size);
  return &plugin.whole;
}

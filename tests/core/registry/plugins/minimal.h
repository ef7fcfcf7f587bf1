/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest components there can be, in C99: what the test plugins are put together of. */
#ifndef REGATTA_TESTS_MINIMAL_H
#define REGATTA_TESTS_MINIMAL_H

#include <regatta/abi.h>

#define COUNT_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static int minimal_instance;

static rg_status minimal_create(const rg_host* host, const rg_value* values, void** self) {
  (void)host, (void)values;
  *self = &minimal_instance;
  return RG_OK;
}
static void minimal_destroy(void* self) {
  (void)self;
}
static rg_status minimal_caps(void* self, rg_transport_caps* out) {
  (void)self;
  out->memory = RG_MEMORY_HOST;
  out->p2p = RG_P2P_INDEPENDENT;
  return RG_OK;
}
static rg_status minimal_listen(void* self, const rg_world* world, rg_blob* blob) {
  (void)self, (void)world, (void)blob;
  return RG_OK;
}
static rg_status minimal_connect(void* self, const rg_blob* blobs, uint64_t timeout_ns) {
  (void)self, (void)blobs, (void)timeout_ns;
  return RG_OK;
}
static rg_status minimal_transfer(void* self, const rg_transfer* transfer) {
  (void)self, (void)transfer;
  return RG_E_UNSUPPORTED;
}
static rg_status minimal_poll(void* self, uint64_t timeout_ns, uint64_t spin_ns, rg_completion* out, uint32_t capacity,
                              uint32_t* count) {
  (void)self, (void)timeout_ns, (void)spin_ns, (void)out, (void)capacity;
  *count = 0;
  return RG_OK;
}
static void minimal_wake(void* self) {
  (void)self;
}
static rg_status minimal_cancel(void* self, uint32_t peer) {
  (void)self, (void)peer;
  return RG_OK;
}
static rg_status minimal_close(void* self, uint64_t timeout_ns) {
  (void)self, (void)timeout_ns;
  return RG_OK;
}
static rg_status minimal_counters(void* self, rg_counters* out) {
  (void)self, (void)out;
  return RG_OK;
}

/* What every transport must have; for use in an initialiser. */
#define MINIMAL_TRANSPORT                                                                                              \
  .create = minimal_create, .destroy = minimal_destroy, .caps = minimal_caps, .listen = minimal_listen,                \
  .connect = minimal_connect, .send = minimal_transfer, .recv = minimal_transfer, .poll = minimal_poll,                \
  .wake = minimal_wake, .cancel = minimal_cancel, .close = minimal_close, .counters = minimal_counters

/* The entry of a plugin with these components, an array of pointers. */
#define ENTRY(plugin_name, component_pointers)                                                                         \
  RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {                                                     \
    static const rg_plugin plugin = {.struct_size = sizeof(rg_plugin),                                                 \
                                     .abi_major = RG_ABI_MAJOR,                                                        \
                                     .abi_minor = RG_ABI_MINOR,                                                        \
                                     .name = plugin_name,                                                              \
                                     .version = "1",                                                                   \
                                     .components = component_pointers,                                                 \
                                     .component_count = COUNT_OF(component_pointers)};                                 \
    (void)host;                                                                                                        \
    return &plugin;                                                                                                    \
  }

#endif

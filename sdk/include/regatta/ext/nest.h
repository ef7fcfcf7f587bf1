/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's host: opens other transports, for a transport that is built of others (e.g. one that
 * limits another's bandwidth, or one that uses one transport inside a host and another between hosts). The rules of
 * abi.h hold.
 */
#ifndef REGATTA_EXT_NEST_H
#define REGATTA_EXT_NEST_H

#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_NEST "regatta.nest/1"

typedef struct rg_nested {
  uint32_t struct_size;          /* set by the caller of open(), to sizeof(rg_nested) */
  const rg_transport* functions; /* valid as long as the host */
  void* self;                    /* belongs to the caller of open(), which ends it with functions->destroy */
} rg_nested;

typedef struct rg_nest {
  uint32_t struct_size;
  void* context;
  /* [main] Creates an instance of the transport `id` with default parameters. Only within create(), so that the engine
   * knows all needed plugins beforehand. The new instance has the same host as the caller; its errors go straight to
   * the engine. Fails with RG_E_CONFIG if there is no such transport, or if it needs a launcher (launcher.h) or has
   * parameters without defaults; else with the status of its create(). */
  rg_status (*open)(void* context, const char* id, rg_nested* out);
  /* [any] Returns a number for a region of the caller's own memory, such as headers of messages, which it registers
   * with the transports that it has opened. No other region of the rank has it. */
  rg_region (*new_region)(void* context);
} rg_nest;

#ifdef __cplusplus
}
#endif
#endif

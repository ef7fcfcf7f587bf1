/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's instance: lets a caller wait for several transports at once. The rules of abi.h hold.
 */
#ifndef REGATTA_EXT_WAIT_H
#define REGATTA_EXT_WAIT_H

#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_WAIT "regatta.wait/1"

typedef struct rg_wait {
  uint32_t struct_size;
  /* [loop] [required] Sets `*descriptor` to a file descriptor that becomes readable once poll() has work to do, or
   * wake() is called. Returns RG_OK, or RG_AGAIN if there is work now: the caller must then poll() instead of waiting.
   * The descriptor belongs to the instance and is the same in every call. After the next poll() its state means nothing
   * until arm() is called again. */
  rg_status (*arm)(void* self, int32_t* descriptor);
} rg_wait;

#ifdef __cplusplus
}
#endif
#endif

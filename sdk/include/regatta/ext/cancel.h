/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's instance: ends one operation. The rules of abi.h hold.
 */
#ifndef REGATTA_EXT_CANCEL_H
#define REGATTA_EXT_CANCEL_H

#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_CANCEL "regatta.cancel/1"

typedef struct rg_cancel {
  uint32_t struct_size;
  /* [loop] [required] Ends the outstanding send or receive with this cookie. The operation completes once, like every
   * other, in a later poll(): with RG_E_CANCELLED, or as it would have without this call. A receive whose message has
   * not begun to arrive must end with RG_E_CANCELLED; any other operation may end in either way. A cancelled operation
   * counts as never posted: the next operation of its peer and lane takes its place. The transport does not access the
   * cancelled operation's buffer after its completion, and leaves that of a cancelled receive unchanged. Other
   * operations go on. Returns RG_OK in both cases, and if no outstanding operation has this cookie. */
  rg_status (*cancel)(void* self, uint64_t cookie);
} rg_cancel;

#ifdef __cplusplus
}
#endif
#endif

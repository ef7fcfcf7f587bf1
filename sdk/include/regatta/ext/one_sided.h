/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's instance: put and get. A rank exposes a region, and passes the key that it gets to its
 * peers, for example by regatta.exchange/1. They then write (put) and read (get) the region's bytes, while the rank
 * that owns the region posts nothing. A put may carry a notification, a number that the owner's poll() reports once the
 * bytes are there. The rules of abi.h hold, and these guarantees:
 *
 *  - A put or get completes exactly once, in a poll(), like a send. A put completes once its bytes are in the peer's
 *    memory: a get that any rank begins afterwards reads them. The local bytes of a put may then be changed.
 *  - The owner's poll() reports a notification exactly once, as a completion with status RG_NOTIFIED: `cookie` is
 *    the notification, `bytes` the length of the put. All bytes of that put can be read then, and those of every put
 *    that the same rank began before it to the same peer. Notifications from one rank come in the order of the puts.
 *    They may come before or after the put's own completion.
 *  - Further order is not guaranteed: neither of the bytes within a put, nor between puts and gets, nor between them
 *    and messages. Puts and gets that overlap at the same time leave or read any mixture of the bytes.
 *  - Neither messages nor collectives wait for puts and gets, nor the reverse.
 *  - A failed put or get is refused by the call, or completes with the error; it never causes a notification:
 *      RG_E_OPERATION  the key is none of the peer's regions, or the range leaves the region. No byte was accessed;
 *                      later operations with the peer go on.
 *      RG_E_PEER       the peer is lost. Any of the bytes may have been written. Notifications that the peer sent
 *                      before are still reported.
 *      RG_E_CANCELLED  rg_transport.cancel(peer) ended it. Any of the bytes may have been written. Later puts and gets
 *                      with the peer are refused with an error, and notifications from it may be lost. */
#ifndef REGATTA_EXT_ONE_SIDED_H
#define REGATTA_EXT_ONE_SIDED_H

#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_ONE_SIDED "regatta.one_sided/1"

typedef struct rg_one_sided_transfer {
  uint32_t struct_size;
  uint32_t peer;    /* the rank that owns the remote region */
  rg_region region; /* that has the local bytes */
  /* [bytes] The local bytes: a put reads them, a get writes them. Valid and, in a put, unchanged until it completes. */
  void* address;
  uint64_t bytes;        /* may be 0; a put without bytes still notifies */
  const void* key;       /* [rg_one_sided.key_bytes] of the peer's region; need not be aligned */
  uint64_t offset;       /* bytes from the start of the peer's region */
  uint64_t notification; /* of a put; 0: the peer is not notified. Of a get: 0 */
  rg_fence after;        /* on devices: access the bytes only after this fence; 0 on the host */
  uint64_t cookie;       /* returned in the completion */
} rg_one_sided_transfer;

typedef struct rg_one_sided {
  uint32_t struct_size;
  uint32_t key_bytes; /* of each key: 1 to 1024 */
  /* [main] [required] After connect. Lets all peers put into and get from a region of this rank that RG_EXT_REGIONS
   * allocated or added, and writes its key: bytes that mean the same on every rank. The key is valid until the region
   * is removed; the caller then makes sure that no operation with it is on its way, and later ones fail. Writes the
   * same key if the region was exposed before. Fails with RG_E_OPERATION if peers cannot reach the region. */
  rg_status (*expose)(void* self, rg_region region, void* key);
  /* [loop] [required] Begins to write the local bytes to the peer's region. Returns without waiting: RG_OK if the
   * transport accepted it, and poll() will report its completion; RG_AGAIN if there is no room now; an error if it is
   * refused. Without RG_OK no completion follows. */
  rg_status (*put)(void* self, const rg_one_sided_transfer* transfer);
  /* [loop] [required] Begins to read bytes of the peer's region into the local bytes. Returns as put() does. */
  rg_status (*get)(void* self, const rg_one_sided_transfer* transfer);
} rg_one_sided;

#ifdef __cplusplus
}
#endif
#endif

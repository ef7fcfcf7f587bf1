/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's host: bytes that some ranks exchange after listen(), such as the id of a group's
 * communicator or the keys of memory that was registered later. They go through the run's control channel, which is
 * slow: not for the traffic of a step. The rules of abi.h hold.
 */
#ifndef REGATTA_EXT_EXCHANGE_H
#define REGATTA_EXT_EXCHANGE_H

#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_EXCHANGE "regatta.exchange/1"

typedef struct rg_exchange {
  uint32_t struct_size;
  void* context;
  /* [main] Within connect() and later functions of the transport in [main]; within create(), caps() and listen() it
   * fails with RG_E_OPERATION.
   * Sends `mine` to all `members`, ranks in ascending order with this one among them, and writes to parts[k] the bytes
   * of members[k]; they are valid until the next call. Blocks until all members have called it, which call it for the
   * same groups in the same order. No bytes make it a barrier of the group. At most 4096 bytes a member. Fails with
   * RG_E_OPERATION for wrong members or too many bytes, and with RG_E_PEER if the run ends meanwhile. */
  rg_status (*all_gather)(void* context, const uint32_t* members, uint32_t count, const rg_blob* mine, rg_blob* parts);
} rg_exchange;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's instance: collectives. All members of a group call them in the same order, with buffers of
 * the same count and type. The functions return as rg_transport.send() does, and poll() reports the completions. On the
 * host a collective of one group never waits for one of another group; on devices it may. The rules of abi.h hold.
 */
#ifndef REGATTA_EXT_COLLECTIVES_H
#define REGATTA_EXT_COLLECTIVES_H

#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_COLLECTIVES "regatta.collectives/1"

typedef struct rg_collective {
  uint32_t struct_size;
  uint32_t group;   /* from split() */
  rg_buffer buffer; /* input and output; RG_F32 for the collectives that sum */
  void* address;
  rg_fence after;
  uint64_t cookie;
  uint32_t root; /* broadcast: the index, among the group's members, of the rank whose bytes are sent */
} rg_collective;

typedef struct rg_collectives {
  uint32_t struct_size;
  /* [main] Creates a group of `members`, ranks in ascending order, one of which is this rank. Called after connect, on
   * all members, in the same order everywhere. Writes the number by which rg_collective.group names the group. Fails
   * with RG_E_UNSUPPORTED if the transport has no collectives for these members. */
  rg_status (*split)(void* self, const uint32_t* members, uint32_t count, uint32_t* group);
  /* [loop] Sums over the members; the result is equal to the bit on all members, and on the host the summands are added
   * in ascending order of rank. Without this function the engine uses none of the others. */
  rg_status (*all_reduce)(void* self, const rg_collective* collective);
  /* [loop] Each of the following three may be null. The buffer of a group of n members consists of n chunks: chunk k
   * belongs to the member at index k, in ascending order of rank. With lines = (count + 15) / 16, chunk k begins at
   * element min(count, lines * k / n * 16), in integer arithmetic, and ends where chunk k + 1 begins; the last one ends
   * at count. If the buffer begins at a cache line, no two chunks share one. Chunks differ by up to 16 elements and may
   * be empty. */
  /* Sums as all_reduce does; each member gets its own chunk of the sum. The rest of its buffer is then undefined. */
  rg_status (*reduce_scatter)(void* self, const rg_collective* collective);
  /* Sends each member's chunk to all other members. */
  rg_status (*all_gather)(void* self, const rg_collective* collective);
  /* Sends the root's buffer to all other members. */
  rg_status (*broadcast)(void* self, const rg_collective* collective);
} rg_collectives;

#ifdef __cplusplus
}
#endif
#endif

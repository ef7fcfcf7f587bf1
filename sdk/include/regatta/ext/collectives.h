/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's instance: collectives. rg_op_collective defines them, their buffers and chunks;
 * rg_transport.poll() reports their completions. On the host a collective of one group never waits for one of another
 * group; on devices it may. The rules of abi.h hold.
 */
#ifndef REGATTA_EXT_COLLECTIVES_H
#define REGATTA_EXT_COLLECTIVES_H

#include <regatta/abi/operations.h>
#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_COLLECTIVES "regatta.collectives/1"

/* The members below that have the name of a member of rg_op_collective have its meaning. */
typedef struct rg_collective {
  uint32_t struct_size;
  uint32_t kind;  /* RG_OP_ALL_REDUCE, ... */
  uint32_t group; /* from split() */
  uint32_t root, reduction, wire;
  rg_buffer source, target;   /* one that this rank does not use has count 0 */
  const void* source_address; /* of the buffers' first bytes */
  void* target_address;
  const uint64_t *counts, *target_counts; /* valid until the collective has completed */
  rg_fence after;                         /* on devices: access the bytes only after this fence; 0 on the host */
  uint64_t cookie;
} rg_collective;

typedef struct rg_collectives {
  uint32_t struct_size;
  /* [main] [required] Creates a group of `members`, ranks in ascending order, one of which is this rank. Called after
   * connect, on all members, in the same order everywhere. Writes the number by which rg_collective.group names the
   * group. Fails with RG_E_UNSUPPORTED if the transport has no collectives for these members. */
  rg_status (*split)(void* self, const uint32_t* members, uint32_t count, uint32_t* group);
  /* [any] [required] Returns 1 if the instance has the collective `kind` with this reduction, type of elements and wire
   * type, else 0. From create() on; the answer is the same on all ranks and does not change. */
  uint32_t (*offers)(void* self, uint32_t kind, uint32_t reduction, uint32_t type, uint32_t wire);
  /* [loop] [required] Begins a collective that the instance offers. Returns without waiting: RG_OK if it was accepted,
   * and poll() will report its completion; RG_AGAIN if there is no room now; an error if it is refused, such as for a
   * wrong group, root or count, or a ghost. Without RG_OK no completion follows.
   * With RG_CAP_ASCENDING_SUMS summands are added in ascending order of rank; without it, in any order, but in the same
   * one for all members. */
  rg_status (*begin)(void* self, const rg_collective* collective);
} rg_collectives;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of the host of a model or an executor: sums over all workers in the middle of a step, such as those of
 * synchronised batch norm. They travel over the run's transport, on a lane of their own. A host without this table
 * has a single worker, or workers that exchange nothing (contention control): then there is nothing to sum. The numbers
 * are in host memory, also for a model on a device, which copies them; a run is refused if its transport does not reach
 * host memory or lacks independent lanes (RG_P2P_INDEPENDENT). The rules of abi.h hold.
 */
#ifndef REGATTA_EXT_STEP_COLLECTIVES_H
#define REGATTA_EXT_STEP_COLLECTIVES_H

#include <regatta/abi/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_STEP_COLLECTIVES "regatta.step_collectives/1"

typedef struct rg_step_collectives {
  uint32_t struct_size;
  uint32_t workers; /* of the run, which all take part; more than 1 */
  void* context;
  /* [main] Within create() or compile(), with every rg_model_setup.purpose: declares that the instance calls
   * all_reduce(), with at most `count` numbers at once, more than 0. The largest of several counts holds. Ranks whose
   * models reserve different counts refuse to start. */
  void (*reserve)(void* context, uint64_t count);
  /* [compute] Within step(). Replaces each of the `count` numbers by its sum over all workers, added in ascending order
   * of worker: the result is equal to the bit on all. Blocks until all workers have called it, each for the same sums
   * in the same order; counts as communication, and allocates nothing. `name` says what is summed, for messages to
   * people. If this does not return RG_OK, step() must return that status at once: a peer died, or the count differs
   * from that of another worker or is greater than the reserved one. */
  rg_status (*all_reduce)(void* context, const char* name, double* numbers, uint64_t count);
} rg_step_collectives;

#ifdef __cplusplus
}
#endif
#endif

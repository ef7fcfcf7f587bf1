/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports that run only among processes which an outside launcher has started (mpirun, srun): an extension of the
 * transport's component, not of an instance. C99; the rules are those of abi.h.
 */
#ifndef REGATTA_LAUNCHED_H
#define REGATTA_LAUNCHED_H

#include <regatta/abi.h>

#define RG_EXT_LAUNCHED "regatta.launched/1"

typedef struct rg_launched {
  uint32_t struct_size;
  uint32_t reserved;
  const char* launcher; /* the command to start with, up to the number of processes: "mpirun -n" */
  /* [main] In all processes that the launcher has started, at once, before any of them makes an instance; in each of
   * them once. A process's rank is the one that the launcher gave it. */
  rg_status (*join)(const rg_host* host);
} rg_launched;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's component, not of an instance: a transport that runs only in processes which a launcher
 * (mpirun, srun) has started. C99; the rules of abi.h hold.
 */
#ifndef REGATTA_EXT_LAUNCHER_H
#define REGATTA_EXT_LAUNCHER_H

#include <regatta/abi.h>

#define RG_EXT_LAUNCHER "regatta.launcher/1"

typedef struct rg_launcher {
  uint32_t struct_size;
  const char* launcher; /* "mpirun -n": the command, to which a user appends the number of ranks; not empty */
  /* [main] [required] Joins this process to the launcher's other processes (e.g. MPI_Init). Called at most once in a
   * process, before the first run that uses this transport; other transports of the same file have calls of their own.
   * Called in all processes that the launcher has started, at the same time, before any of them creates an instance.
   * The rank of a process is the one that the launcher assigned to it. `host` is valid until the process ends. Returns
   * RG_OK or an error whose text was passed to host->fail(); an error ends the run. */
  rg_status (*join)(const rg_host* host);
} rg_launcher;

#endif

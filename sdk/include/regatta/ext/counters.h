/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's instance: counters of its own, such as retransmits. The rules of abi.h hold.
 */
#ifndef REGATTA_EXT_COUNTERS_H
#define REGATTA_EXT_COUNTERS_H

#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_COUNTERS "regatta.counters/1"

typedef struct rg_counter {
  uint32_t struct_size;
  const char* name; /* lower case; ends with "_bytes" or "_seconds" if it counts these, else it is a plural noun */
  double value;     /* since create(); never decreases. Exact up to 2^53 */
} rg_counter;

typedef struct rg_own_counters {
  uint32_t struct_size;
  /* [loop] [required] From the end of connect() to close(). Sets `*counters` to an array of `*count` counters, valid
   * until the next call. The names and their order are the same in every call; values of equal names are added
   * up. The engine records the increase in the timed region, on workers without that of evaluations. */
  rg_status (*read)(void* self, const rg_counter** counters, uint32_t* count);
} rg_own_counters;

#ifdef __cplusplus
}
#endif
#endif

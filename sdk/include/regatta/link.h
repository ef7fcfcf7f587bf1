/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a strategy's host (rg_strategy_host.host), for a strategy that keeps measurements from one run to the
 * next: identifies the network below the strategy. Absent under virtual time, in which nothing may depend on earlier
 * runs, and in plan(). C99; the rules of abi.h hold.
 */
#ifndef REGATTA_LINK_H
#define REGATTA_LINK_H

#include <regatta/abi.h>

#define RG_EXT_LINK "regatta.link/1"

typedef struct rg_link {
  uint32_t struct_size;
  uint32_t reserved;
  /* One line of printable characters: the transport with its version and parameters, the address that it listens on,
   * and the machine, as this rank has them. Measurements of two runs with the same text are comparable. Valid as long
   * as the strategy's instance. */
  const char* description;
} rg_link;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies below a strategy, for one that keeps what it has measured from one run to the next: an extension of a
 * strategy's host (rg_host.extension). Absent under virtual time, where nothing may depend on earlier runs. C99; the
 * rules are those of abi.h.
 */
#ifndef REGATTA_LINK_H
#define REGATTA_LINK_H

#include <regatta/abi.h>

#define RG_EXT_LINK "regatta.link/1"

typedef struct rg_link {
  uint32_t struct_size;
  uint32_t reserved;
  /* The transport with its version and parameters, the address it listens on and the machine, as this rank has them, in
   * one line of printable characters: in another run with the same text measurements come out alike. */
  const char* description;
} rg_link;

#endif

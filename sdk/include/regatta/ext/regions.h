/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's instance: memory that the transport knows before a transfer names it. The rules of
 * abi.h hold.
 */
#ifndef REGATTA_EXT_REGIONS_H
#define REGATTA_EXT_REGIONS_H

#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_REGIONS "regatta.regions/1"

typedef struct rg_regions {
  uint32_t struct_size;
  /* [main] Before or after connect. Allocates memory that peers can reach, zeroed and 64-byte aligned, valid until
   * remove(). If it fails or writes a null address, or if this pointer is null, the engine allocates the memory itself
   * and calls add(). `memory`: the kind, one of RG_MEMORY_*. */
  rg_status (*allocate)(void* self, rg_region region, uint64_t bytes, uint32_t memory, void** address);
  /* [main] Registers memory of the engine, which transfers may name from now on; valid until remove(). A null pointer:
   * the transport needs no registration. */
  rg_status (*add)(void* self, rg_region region, void* address, uint64_t bytes, uint32_t memory);
  /* [main] Undoes allocate() or add(). Requires: no operation uses the region any more. Must not be null if allocate or
   * add is there. Regions that are still there at destroy() end with it. */
  void (*remove)(void* self, rg_region region);
} rg_regions;

#ifdef __cplusplus
}
#endif
#endif

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

/* Where the memory of a region is. */
typedef struct rg_memory {
  uint32_t struct_size;
  uint32_t place;    /* RG_MEMORY_HOST or RG_MEMORY_DEVICE */
  int32_t device;    /* index of the device; -1: on the host */
  int32_t numa_node; /* of the host's memory, or the one nearest to the device; -1: unknown */
  /* A file descriptor of the memory (dma-buf), by which another driver reaches a device's memory, and the region's
   * first byte in it. Valid during the call: a transport that keeps it duplicates it. -1: there is none, because the
   * memory is the host's, or the device exports none (rg_device.export_memory); the transport then uses the address. */
  int32_t dma_buf;
  uint64_t dma_buf_offset;
} rg_memory;

/* [loop] below includes [main], before connect and after it. The engine never uses the number of a region again. */
typedef struct rg_regions {
  uint32_t struct_size;
  /* [loop] [optional: the engine allocates] Allocates memory that peers can reach, where `memory` says (host or
   * device), zeroed and 64-byte aligned, valid until remove(). If it fails or writes a null address, the engine
   * allocates the memory itself and calls add(). */
  rg_status (*allocate)(void* self, rg_region region, uint64_t bytes, const rg_memory* memory, void** address);
  /* [loop] [optional: the transport needs no registration] Registers memory of the engine, which transfers may name
   * from now on; valid until remove(). */
  rg_status (*add)(void* self, rg_region region, void* address, uint64_t bytes, const rg_memory* memory);
  /* [loop] [required if allocate or add is there] Undoes allocate() or add(). Requires: no operation uses the region
   * any more. Regions that are still there at destroy() end with it. */
  void (*remove)(void* self, rg_region region);
} rg_regions;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices with memory of their own, as the engine sees them: an extension of the executor that computes there. What runs
 * on the host alone needs none of this. The rules of abi.h hold.
 */
#ifndef REGATTA_DEVICE_H
#define REGATTA_DEVICE_H

#include <regatta/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Extension of an executor's component (rg_component.extension). */
#define RG_EXT_DEVICES "regatta.devices/1"

typedef struct rg_devices {
  uint32_t struct_size;
  uint32_t memory; /* what it is about: RG_MEMORY_CUDA */
  /* [main] How many there are, at least one. RG_E_UNSUPPORTED: none, or nothing to drive them; the text says which. */
  rg_status (*count)(const rg_host* host, uint32_t* count);
  /* [main] Writes what device `index` is, one line ended by 0: "NVIDIA H200, 139.8 GiB, compute capability 9.0". */
  rg_status (*describe)(const rg_host* host, uint32_t index, char* text, uint64_t room);
} rg_devices;

/* Where a rank's tensors live: extension of a transport's host. Without it they are the host's. */
#define RG_EXT_PLACE "regatta.place/1"

typedef struct rg_place {
  uint32_t struct_size;
  uint32_t memory; /* RG_MEMORY_* */
  int32_t device;  /* its index, on devices */
  uint32_t reserved;
} rg_place;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * How often the data has each value of an input of indices, for models that draw by it (negative sampling draws words by
 * their counts): an extension of the model's component. C99; the rules are those of abi.h.
 */
#ifndef REGATTA_FREQUENCIES_H
#define REGATTA_FREQUENCIES_H

#include <regatta/abi.h>

#define RG_EXT_FREQUENCIES "regatta.frequencies/1"

typedef struct rg_frequencies {
  uint32_t struct_size;
  uint32_t reserved;
  /* [main] In workers, between create and the first step or rows, once for each input whose data were counted or are
   * drawn from a known distribution. weights[i], 0 or more, is proportional to how often index i of rg_model_info.inputs
   * [input] comes; indices from `count` on never do. Valid during the call. The same on all workers. */
  rg_status (*frequencies)(void* self, uint32_t input, const double* weights, uint64_t count);
} rg_frequencies;

#endif

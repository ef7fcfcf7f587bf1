/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a model's component: how often each index occurs in the data of an input, for models that draw indices
 * by their frequency (negative sampling draws words by their counts). C99; the rules of abi.h hold.
 */
#ifndef REGATTA_EXT_FREQUENCIES_H
#define REGATTA_EXT_FREQUENCIES_H

#include <regatta/abi.h>

#define RG_EXT_FREQUENCIES "regatta.frequencies/1"

typedef struct rg_frequencies {
  uint32_t struct_size;
  /* [main] Passes the frequencies of one input; input is an index into rg_model_info.inputs. Called on workers, between
   * create and the first step() or rows(), once for each input whose data were counted or are drawn from a known
   * distribution. weights[i], 0 or more, is proportional to the frequency of index i, with any sum; indices from
   * `count` on never occur. `weights` is valid during the call, and equal on all workers. */
  rg_status (*frequencies)(void* self, uint32_t input, const double* weights, uint64_t count);
} rg_frequencies;

#endif

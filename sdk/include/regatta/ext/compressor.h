/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a strategy's component: the compressor of its messages, and what the compressor promises. A run does not
 * use it; `regatta check` tests the promises by it. regatta/compressor.hpp offers it for rg::compressor<C>. C99; the
 * rules of abi.h hold.
 *
 * x is a tensor's gradient, n its number of elements, C(x) the message and D(C(x)) what the receiver gets.
 */
#ifndef REGATTA_EXT_COMPRESSOR_H
#define REGATTA_EXT_COMPRESSOR_H

#include <regatta/abi.h>

#define RG_EXT_COMPRESSOR "regatta.compressor/1"

enum {
  /* Over the seeds, the mean of D(C(x)) is x. */
  RG_COMPRESSION_UNBIASED = 1,
  /* ||x - D(C(x))||^2 <= (1 - delta) ||x||^2 for each x, over the seeds in the mean; delta is from above 0 to 1. */
  RG_COMPRESSION_CONTRACTS = 2,
  /* Neither: the error of a message must be sent later (error feedback), and the strategy always does so. */
  RG_COMPRESSION_NEEDS_FEEDBACK = 3
};

typedef struct rg_compressor {
  uint32_t struct_size;
  uint32_t promise; /* RG_COMPRESSION_* */
  /* [any] [both required] Create and destroy a compressor; `values` are the parameters of the strategy. It has no state
   * that changes its results: the functions below depend on their arguments alone. One function of an instance runs at
   * a time. */
  rg_status (*create)(const rg_host* host, const rg_value* values, void** self);
  void (*destroy)(void* self);
  /* [any] [required] Returns the length in bytes of every message of n elements, n at least 1. */
  uint64_t (*bytes)(void* self, uint64_t n);
  /* [any] [required with the promise RG_COMPRESSION_CONTRACTS, else null] Returns delta for n elements. */
  double (*delta)(void* self, uint64_t n);
  /* [any] [required] Writes C(x) to `message`, all bytes(n) of it. Random numbers depend on `seed` alone. */
  rg_status (*compress)(void* self, const float* x, uint64_t n, uint64_t seed, void* message);
  /* [any] [required] Writes D(message) to `y`, n elements. */
  rg_status (*decompress)(void* self, const void* message, uint64_t n, float* y);
  /* [any] [required] Turns p, n elements from which `message` was compressed, into its residual p - D(message), which
   * error feedback adds to the next gradient. */
  rg_status (*residual)(void* self, const void* message, uint64_t n, float* p);
  /* [any] Adds two messages of n elements that were compressed with the same seed: D of the sum is the sum of both D,
   * up to the rounding of fp32. `sum` is one of them at first. Null: messages cannot be added. */
  rg_status (*add)(void* self, void* sum, const void* message, uint64_t n);
} rg_compressor;

#endif

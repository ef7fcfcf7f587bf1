/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of a transport's host: proof that a peer belongs to the run. mac() writes the 32 bytes of HMAC-SHA-256
 * over `data`, keyed with the run's secret, which the plugin never sees. The transport does the handshake: each side
 * sends a random challenge, answers the other's by mac(), and checks the answer by computing the same mac() itself.
 * The rules of abi.h hold.
 */
#ifndef REGATTA_EXT_AUTHENTICATE_H
#define REGATTA_EXT_AUTHENTICATE_H

#include <regatta/abi/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_AUTHENTICATE "regatta.authenticate/1"

typedef struct rg_authenticate {
  uint32_t struct_size;
  void* context;
  rg_status (*mac)(void* context, const void* data, uint64_t bytes, uint8_t out[32]); /* [any] */
} rg_authenticate;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam of transports: what moves bytes between ranks, and the extensions of one. The rules are those of abi.h.
 */
#ifndef REGATTA_ABI_TRANSPORT_H
#define REGATTA_ABI_TRANSPORT_H

#include <regatta/abi/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RG_CAP_ADD = 1,         /* a receive of RG_F32 may add instead of copy */
  RG_CAP_EXACT_SIZE = 2,  /* a message must be as long as its receive: no strategies with RG_PLAN_SHORT run over it */
  RG_CAP_SLEEP = 4,       /* poll() can sleep until something happens */
  RG_CAP_VIRTUAL = 8,     /* keeps a virtual clock and moves ghosts: buffers without bytes */
  RG_CAP_CANCEL_ALL = 16, /* cancel(peer) ends the operations with all peers */
  RG_CAP_NONE = 32,       /* connects nobody: only strategies without pairs run over it */
  RG_CAP_CONVERT = 64,    /* converts between memory and wire (rg_transfer.wire); else the engine does */
  RG_CAP_ONE_HOST = 128,  /* connects ranks of one host only; others are refused before anything starts */
  RG_CAP_LONG_FAILS_SENDER = 256 /* a message longer than its receive ends its send with an error, too */
};

enum { RG_P2P_INDEPENDENT = 1, RG_P2P_ORDERED = 2, RG_P2P_NONE = 3 };

typedef struct rg_transport_caps {
  uint32_t struct_size;
  uint32_t flags;       /* RG_CAP_* */
  uint32_t memory;      /* bit mask of RG_MEMORY_* it can send from and receive into */
  uint32_t p2p;         /* RG_P2P_* */
  uint32_t own_threads; /* threads it runs: counted as cores */
  uint32_t reserved;
} rg_transport_caps;

typedef struct rg_blob {
  const void* data;
  uint64_t bytes;
} rg_blob;

/* Who takes part. Valid until close(). */
typedef struct rg_world {
  uint32_t struct_size;
  uint32_t rank, size;
  uint32_t lanes;        /* 0 is the most urgent */
  const uint32_t* peers; /* the ranks this one talks to, ascending, itself left out */
  uint32_t peer_count;
  uint32_t reserved;
  const uint32_t* host_of; /* number of the host of every rank */
  const char* address;     /* numeric address of the interface to listen on */
} rg_world;

enum { RG_TRANSFER_ADD = 1 }; /* receive: add to what is in the buffer; only with RG_CAP_ADD, RG_F32 */

typedef struct rg_transfer {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t peer, lane;
  rg_buffer buffer; /* send: what to send; receive: where to, at least as long as the message */
  void* address;    /* of the buffer's first byte; null for ghosts */
  rg_fence after;   /* do not touch the bytes before; 0 on the host */
  uint64_t cookie;  /* comes back in the completion */
  uint32_t wire;    /* with RG_CAP_CONVERT: RG_F16 or RG_BF16 on the wire, RG_F32 in memory; 0: the same in both */
  uint32_t reserved;
} rg_transfer;

/* What crossed the medium, headers and everything else included. */
typedef struct rg_counters {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t bytes_sent, bytes_received;
  uint64_t messages_sent, messages_received;
} rg_counters;

/* Guarantees that strategies build on:
 *  - FIFO per (peer, lane, direction). Lanes never block each other, nor do sends block receives.
 *  - The k-th send on a lane meets the k-th receive. A send may complete only when its receive is posted; strategies
 *    never depend on either. A message may be shorter than its receive. One that is longer ends the receive with an
 *    error and writes nothing behind its buffer; the send may succeed, unless RG_CAP_LONG_FAILS_SENDER says otherwise.
 *  - Completion of a send: the buffer may be changed, and the bytes still arrive as they were.
 *  - Receives into overlapping bytes, adding or not, take effect in the order in which they were posted.
 *  - Every operation that was taken completes exactly once, with its cookie and RG_OK or an error (RG_E_*), a receive
 *    with at most as many bytes as it has room for. Else the engine ends the run with the transport's name.
 *  - Nothing happens outside poll(), but for what own_threads declares. */
typedef struct rg_transport {
  uint32_t struct_size;
  uint32_t reserved;
  /* [main] Also where nothing will be connected, to ask for caps: what it needs of the host it asks for in listen. */
  rg_status (*create)(const rg_host* host, const rg_value* values, void** self);
  void (*destroy)(void* self); /* [main] also after a failed listen or connect, and without close */
  rg_status (*caps)(void* self, rg_transport_caps* out); /* [main] before listen */
  /* [main] Opens for peers; `*blob` is handed to every peer's connect and stays valid until ours returns. */
  rg_status (*listen)(void* self, const rg_world* world, rg_blob* blob);
  /* [main] On all ranks at once. blobs[rank] is what that rank's listen made; empty for ranks we do not talk to. */
  rg_status (*connect)(void* self, const rg_blob* blobs, uint64_t timeout_ns);
  rg_status (*send)(void* self, const rg_transfer* transfer); /* [loop] never waits; RG_AGAIN: not taken */
  rg_status (*recv)(void* self, const rg_transfer* transfer); /* [loop] likewise */
  /* [loop] Moves bytes and writes up to `capacity` completions. With none to give it waits up to `timeout_ns` (0: not
   * at all; UINT64_MAX: until something happens), spinning first for `spin_ns` of it. */
  rg_status (*poll)(void* self, uint64_t timeout_ns, uint64_t spin_ns, rg_completion* out, uint32_t capacity,
                    uint32_t* count);
  void (*wake)(void* self); /* [any] ends the current poll, or the next one if none waits */
  /* [loop] Completes every operation with `peer` as RG_E_CANCELLED, once the medium can no longer touch its memory. */
  rg_status (*cancel)(void* self, uint32_t peer);
  /* [main] No operation is outstanding here. Waits until what was sent has arrived, then leaves. */
  rg_status (*close)(void* self, uint64_t timeout_ns);
  rg_status (*counters)(void* self, rg_counters* out); /* [loop] */
  /* [loop] Virtual clock only: the time now. */
  uint64_t (*now)(void* self);
  /* [any] A table of functions of this instance by id, or null. */
  const void* (*extension)(void* self, const char* id);
} rg_transport;

/* Memory that the transport knows beforehand. */
#define RG_EXT_REGIONS "regatta.regions/1"

typedef struct rg_regions {
  uint32_t struct_size;
  uint32_t reserved;
  /* [main] Before connect or after. Memory that peers can reach, zeroed, 64-byte aligned. Null: nothing to offer, the
   * engine brings its own. */
  rg_status (*allocate)(void* self, rg_region region, uint64_t bytes, uint32_t memory, void** address);
  /* [main] Memory of the engine's that transfers may name from now on. Null: no need to know. */
  rg_status (*add)(void* self, rg_region region, void* address, uint64_t bytes, uint32_t memory);
  /* [main] Undoes either; no operation touches it any more. */
  void (*remove)(void* self, rg_region region);
} rg_regions;

/* Of a group of ranks, called by all members in one order. Groups do not wait for each other; on devices they may. */
#define RG_EXT_COLLECTIVES "regatta.collectives/1"

typedef struct rg_collective {
  uint32_t struct_size;
  uint32_t group;   /* what split made */
  rg_buffer buffer; /* in place; RG_F32 where it is summed */
  void* address;
  rg_fence after;
  uint64_t cookie;
  uint32_t root; /* broadcast: whose bytes all get, its place among the members */
  uint32_t reserved;
} rg_collective;

typedef struct rg_collectives {
  uint32_t struct_size;
  uint32_t reserved;
  /* [main] After connect, on all members, in the same order everywhere. `members` are ranks, ascending. */
  rg_status (*split)(void* self, const uint32_t* members, uint32_t count, uint32_t* group);
  /* [loop] The sum over the members, added in ascending order of rank, to the bit the same on all; never waits. */
  rg_status (*all_reduce)(void* self, const rg_collective* collective);
  /* [loop] Each of the following may be null; none waits. Of n members, the one at place k by rank has share k of the
   * buffer: it begins at element min(count, lines * k / n * 16), lines = (count + 15) / 16, and ends where the next one
   * begins. So no two shares have a cache line in common, and the last ones may be shorter or empty. */
  /* The same sum, of which every member gets its own share; what the rest of its buffer then holds is of no use. */
  rg_status (*reduce_scatter)(void* self, const rg_collective* collective);
  /* Every member's own share goes to all others. */
  rg_status (*all_gather)(void* self, const rg_collective* collective);
  /* The root's buffer goes to all others. */
  rg_status (*broadcast)(void* self, const rg_collective* collective);
} rg_collectives;

/* Proof of membership: extension of the host. `mac` is 32 bytes of HMAC-SHA-256 over `data`, keyed with the run's secret,
 * which the plugin never sees. Both sides send a random challenge and check the other's answer. */
#define RG_EXT_AUTHENTICATE "regatta.authenticate/1"

typedef struct rg_authenticate {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  rg_status (*mac)(void* context, const void* data, uint64_t bytes, uint8_t out[32]); /* [any] */
} rg_authenticate;

/* Other transports: extension of a transport's host, for transports that are made of others (one that limits the rate of
 * another; one inside a host and another between hosts). */
#define RG_EXT_NEST "regatta.nest/1"

typedef struct rg_nested {
  uint32_t struct_size;
  uint32_t reserved;
  const rg_transport* functions; /* valid as long as the host */
  void* self;                    /* the opener's: it ends with functions->destroy */
} rg_nested;

typedef struct rg_nest {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  /* [main] In create only: so the engine learns which plugins are needed. Makes an instance of the transport `id`, its
   * parameters the defaults, its host the opener's own: what it reports reaches the engine at once. */
  rg_status (*open)(void* context, const char* id, rg_nested* out);
} rg_nest;

/* Waiting for several transports at once: extension of an instance. */
#define RG_EXT_WAIT "regatta.wait/1"

typedef struct rg_wait {
  uint32_t struct_size;
  uint32_t reserved;
  /* [loop] `*descriptor` will be readable once poll() has something to do, wake() included. It is the instance's, the
   * same every time, and means nothing after the next poll(). RG_AGAIN: there is something to do now. */
  rg_status (*arm)(void* self, int32_t* descriptor);
} rg_wait;

#ifdef __cplusplus
}
#endif
#endif

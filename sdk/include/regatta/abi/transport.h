/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of transports, the plugins that move bytes between ranks, and their extensions. The rules of abi.h
 * hold.
 */
#ifndef REGATTA_ABI_TRANSPORT_H
#define REGATTA_ABI_TRANSPORT_H

#include <regatta/abi/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RG_CAP_ADD = 1,         /* a receive of RG_F32 can add to its buffer (RG_TRANSFER_ADD) */
  RG_CAP_EXACT_SIZE = 2,  /* a message must be as long as its receive: strategies with RG_PLAN_SHORT are refused */
  RG_CAP_SLEEP = 4,       /* poll() sleeps while it waits; without this flag it may use the processor all the time */
  RG_CAP_VIRTUAL = 8,     /* keeps a virtual clock, and moves ghosts: buffers that have a size but no bytes */
  RG_CAP_CANCEL_ALL = 16, /* cancel(peer) ends the operations with all peers, not only with `peer` */
  RG_CAP_NONE = 32,       /* connects no ranks: only strategies that exchange no messages run over it */
  RG_CAP_CONVERT = 64,    /* converts to and from rg_transfer.wire; without this flag the engine converts */
  RG_CAP_ONE_HOST = 128,  /* connects ranks of one host only; a case with more hosts is refused before it starts */
  RG_CAP_LONG_FAILS_SENDER = 256 /* a message longer than its receive fails the send too, not only the receive */
};

/* INDEPENDENT: lanes do not block each other. ORDERED: the transport orders the messages of all lanes in one queue, as
 * NCCL does; strategies with RG_PLAN_INDEPENDENT are refused. NONE: it has no send and receive. */
enum { RG_P2P_INDEPENDENT = 1, RG_P2P_ORDERED = 2, RG_P2P_NONE = 3 };

typedef struct rg_transport_caps {
  uint32_t struct_size;
  uint32_t flags;       /* RG_CAP_* */
  uint32_t memory;      /* bit mask of the RG_MEMORY_* that it can send from and receive into; not 0 */
  uint32_t p2p;         /* RG_P2P_* */
  uint32_t own_threads; /* threads that the transport runs; the engine counts each as one core */
  uint32_t reserved;
} rg_transport_caps;

typedef struct rg_blob {
  const void* data;
  uint64_t bytes;
} rg_blob;

/* The ranks of a run, as one rank sees them. Valid, with all that it points to, until close() or destroy() returns. */
typedef struct rg_world {
  uint32_t struct_size;
  uint32_t rank, size;
  uint32_t lanes;        /* number of lanes; lane 0 is the most urgent */
  const uint32_t* peers; /* the ranks that this rank exchanges messages with, ascending, without itself */
  uint32_t peer_count;
  uint32_t reserved;
  const uint32_t* host_of; /* [size]: for each rank the number of its host */
  const char* address;     /* numeric address of the interface to listen on */
} rg_world;

enum { RG_TRANSFER_ADD = 1 }; /* receive: add to the buffer instead of overwriting it; requires RG_CAP_ADD, RG_F32 */

typedef struct rg_transfer {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t peer, lane;
  /* send: the message; receive: its destination, at least as long as the message. The count may be 0: a message without
   * bytes is delivered like any other. The memory is valid and, in a send, unchanged until the operation completes. */
  rg_buffer buffer;
  void* address;   /* of the buffer's first byte; null for ghosts */
  rg_fence after;  /* on devices: access the bytes only after this fence has passed; 0 on the host */
  uint64_t cookie; /* returned in the completion */
  uint32_t wire;   /* RG_F16, RG_BF16 (memory is RG_F32; needs RG_CAP_CONVERT): wire type; 0: the same as in memory */
  uint32_t reserved;
} rg_transfer;

/* Traffic on the medium since create(), including headers and all other overhead. */
typedef struct rg_counters {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t bytes_sent, bytes_received;
  uint64_t messages_sent, messages_received;
} rg_counters;

/* Guarantees of a transport, on which strategies build:
 *  - Messages of one peer, lane and direction are delivered in order. Lanes never block each other
 *    (RG_P2P_INDEPENDENT), and sends never block receives.
 *  - The k-th send to a peer on a lane matches the k-th receive there. A transport may complete a send before its
 *    receive is posted, or only afterwards; a strategy must depend on neither. A message may be shorter than its
 *    receive. A message that is longer fails the receive, and no byte behind the receive's buffer is written; the send
 *    may succeed, unless the transport has RG_CAP_LONG_FAILS_SENDER.
 *  - Once a send has completed, its buffer may be changed; the receiver still gets the bytes as they were.
 *  - Receives whose buffers overlap, adding or not, take effect in the order in which they were posted.
 *  - Every accepted operation completes exactly once, in a poll(), with its cookie and RG_OK or an error (RG_E_*). A
 *    receive completes with at most as many bytes as its buffer has room for. If a transport violates this, the engine
 *    ends the run with an error that names the transport.
 *  - If a peer is lost, the operations with it complete with RG_E_PEER, and later ones are refused with RG_E_PEER.
 *    Operations with other peers go on.
 *  - The transport works only inside poll(), except on the threads that own_threads declares. */
typedef struct rg_transport {
  uint32_t struct_size;
  uint32_t reserved;
  /* [main] The engine also creates instances only to call caps(), without listen. The instance must therefore ask for
   * the resources of the host in listen, not here. */
  rg_status (*create)(const rg_host* host, const rg_value* values, void** self);
  /* [main] Also without close, after a failed listen or connect, and with operations outstanding, which then end
   * without a completion. */
  void (*destroy)(void* self);
  rg_status (*caps)(void* self, rg_transport_caps* out); /* [main] called before listen */
  /* [main] Opens the medium for peers to connect. The engine passes the bytes of `*blob` to connect() of every peer;
   * they stay valid until connect() of this instance returns. */
  rg_status (*listen)(void* self, const rg_world* world, rg_blob* blob);
  /* [main] Connects to all of rg_world.peers; called on all ranks at the same time. blobs[r], for r from 0 to size - 1,
   * are the bytes that listen() of rank r wrote; a transport that opens another one may leave out those of ranks that
   * are no peers. Fails with RG_E_PEER, not RG_TIMEOUT, if a peer is not connected within `timeout_ns`; the text names
   * the rank. */
  rg_status (*connect)(void* self, const rg_blob* blobs, uint64_t timeout_ns);
  /* [loop] Submits a send. Returns without waiting: RG_OK if the transport accepted it, and poll() will report its
   * completion; RG_AGAIN if there is no room now; an error if it is refused. Without RG_OK no completion follows. */
  rg_status (*send)(void* self, const rg_transfer* transfer);
  /* [loop] Submits a receive. Returns as send() does. */
  rg_status (*recv)(void* self, const rg_transfer* transfer);
  /* [loop] Moves bytes, and writes up to `capacity` completions to `out` and their number to `*count`. If no operation
   * has completed, it waits for up to `timeout_ns` (0: not at all; UINT64_MAX: without a limit); of this time it spins
   * for the first `spin_ns`. Returns RG_OK also if none completed in that time. An operation that fails is no error of
   * poll(): its completion has the status. */
  rg_status (*poll)(void* self, uint64_t timeout_ns, uint64_t spin_ns, rg_completion* out, uint32_t capacity,
                    uint32_t* count);
  /* [any] From create() on. Ends the poll() that is running; if none is running, the next poll() does not wait. */
  void (*wake)(void* self);
  /* [loop] Gives `peer` up: later polls report RG_E_CANCELLED for every operation with it, once the medium can no
   * longer access its memory. Later sends to it and receives from it are refused with an error. */
  rg_status (*cancel)(void* self, uint32_t peer);
  /* [main] Disconnects, after waiting until all sent messages have arrived. Requires: no operation is outstanding.
   * Returns RG_TIMEOUT if they have not arrived within `timeout_ns`. Only destroy() follows. */
  rg_status (*close)(void* self, uint64_t timeout_ns);
  rg_status (*counters)(void* self, rg_counters* out); /* [loop] */
  /* [loop] Returns the virtual time in nanoseconds. Required with RG_CAP_VIRTUAL; else null. */
  uint64_t (*now)(void* self);
  /* [any] Returns this instance's table of functions with this id, or null. The pointer itself may be null. */
  const void* (*extension)(void* self, const char* id);
} rg_transport;

/* Extension of a transport's instance: memory that the transport knows before a transfer names it. */
#define RG_EXT_REGIONS "regatta.regions/1"

typedef struct rg_regions {
  uint32_t struct_size;
  uint32_t reserved;
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

/* Extension of a transport's instance: collectives. All members of a group call them in the same order, with buffers of
 * the same count and type. The functions return as rg_transport.send() does, and poll() reports the completions. On the
 * host a collective of one group never waits for one of another group; on devices it may. */
#define RG_EXT_COLLECTIVES "regatta.collectives/1"

typedef struct rg_collective {
  uint32_t struct_size;
  uint32_t group;   /* from split() */
  rg_buffer buffer; /* input and output; RG_F32 for the collectives that sum */
  void* address;
  rg_fence after;
  uint64_t cookie;
  uint32_t root; /* broadcast: the index, among the group's members, of the rank whose bytes are sent */
  uint32_t reserved;
} rg_collective;

typedef struct rg_collectives {
  uint32_t struct_size;
  uint32_t reserved;
  /* [main] Creates a group of `members`, ranks in ascending order, one of which is this rank. Called after connect, on
   * all members, in the same order everywhere. Writes the number by which rg_collective.group names the group. Fails
   * with RG_E_UNSUPPORTED if the transport has no collectives for these members. */
  rg_status (*split)(void* self, const uint32_t* members, uint32_t count, uint32_t* group);
  /* [loop] Sums over the members; the result is equal to the bit on all members, and on the host the summands are added
   * in ascending order of rank. Without this function the engine uses none of the others. */
  rg_status (*all_reduce)(void* self, const rg_collective* collective);
  /* [loop] Each of the following three may be null. The buffer of a group of n members consists of n chunks: chunk k
   * belongs to the member at index k, in ascending order of rank. With lines = (count + 15) / 16, chunk k begins at
   * element min(count, lines * k / n * 16), in integer arithmetic, and ends where chunk k + 1 begins; the last one ends
   * at count. If the buffer begins at a cache line, no two chunks share one. Chunks differ by up to 16 elements and may
   * be empty. */
  /* Sums as all_reduce does; each member gets its own chunk of the sum. The rest of its buffer is then undefined. */
  rg_status (*reduce_scatter)(void* self, const rg_collective* collective);
  /* Sends each member's chunk to all other members. */
  rg_status (*all_gather)(void* self, const rg_collective* collective);
  /* Sends the root's buffer to all other members. */
  rg_status (*broadcast)(void* self, const rg_collective* collective);
} rg_collectives;

/* Extension of a transport's host: proof that a peer belongs to the run. mac() writes the 32 bytes of HMAC-SHA-256 over
 * `data`, keyed with the run's secret, which the plugin never sees. The transport does the handshake: each side sends a
 * random challenge, answers the other's by mac(), and checks the answer by computing the same mac() itself. */
#define RG_EXT_AUTHENTICATE "regatta.authenticate/1"

typedef struct rg_authenticate {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  rg_status (*mac)(void* context, const void* data, uint64_t bytes, uint8_t out[32]); /* [any] */
} rg_authenticate;

/* Extension of a transport's host: opens other transports, for a transport that is built of others (e.g. one that
 * limits another's bandwidth, or one that uses one transport inside a host and another between hosts). */
#define RG_EXT_NEST "regatta.nest/1"

typedef struct rg_nested {
  uint32_t struct_size;
  uint32_t reserved;
  const rg_transport* functions; /* valid as long as the host */
  void* self;                    /* belongs to the caller of open(), which ends it with functions->destroy */
} rg_nested;

typedef struct rg_nest {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  /* [main] Creates an instance of the transport `id` with default parameters. Only within create(), so that the engine
   * knows all needed plugins beforehand. The new instance has the same host as the caller; its errors go straight to
   * the engine. Fails with RG_E_CONFIG if there is no such transport, or if it needs a launcher (launcher.h) or has
   * parameters without defaults; else with the status of its create(). */
  rg_status (*open)(void* context, const char* id, rg_nested* out);
} rg_nest;

/* Extension of a transport's instance: lets a caller wait for several transports at once. */
#define RG_EXT_WAIT "regatta.wait/1"

typedef struct rg_wait {
  uint32_t struct_size;
  uint32_t reserved;
  /* [loop] Sets `*descriptor` to a file descriptor that becomes readable once poll() has work to do, or wake() is
   * called. Returns RG_OK, or RG_AGAIN if there is work now: the caller must then poll() instead of waiting. The
   * descriptor belongs to the instance and is the same in every call. After the next poll() its state means nothing
   * until arm() is called again. */
  rg_status (*arm)(void* self, int32_t* descriptor);
} rg_wait;

#ifdef __cplusplus
}
#endif
#endif

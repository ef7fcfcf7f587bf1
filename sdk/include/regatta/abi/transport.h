/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of transports, the plugins that move bytes between ranks. The rules of abi.h hold.
 */
#ifndef REGATTA_ABI_TRANSPORT_H
#define REGATTA_ABI_TRANSPORT_H

#include <regatta/abi/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RG_CAP_ADD = 1,         /* a receive of RG_F32 can add to its buffer (RG_TRANSFER_ADD) */
  RG_CAP_EXACT_SIZE = 2,  /* messages are as long as their receives: RG_PLAN_SHORT and sparse tables are refused */
  RG_CAP_SLEEP = 4,       /* poll() sleeps while it waits; without this flag it may use the processor all the time */
  RG_CAP_VIRTUAL = 8,     /* keeps a virtual clock, and moves ghosts: buffers that have a size but no bytes */
  RG_CAP_CANCEL_ALL = 16, /* cancel(peer) ends the operations with all peers, not only with `peer` */
  RG_CAP_NONE = 32,       /* connects no ranks: only strategies that exchange no messages run over it */
  RG_CAP_CONVERT = 64,    /* converts to and from rg_transfer.wire; without this flag the engine converts */
  RG_CAP_ONE_HOST = 128,  /* connects ranks of one host only: over several, strategies with messages are refused */
  RG_CAP_LONG_FAILS_SENDER = 256, /* a message longer than its receive fails the send too, not only the receive */
  RG_CAP_ASCENDING_SUMS = 512,    /* its collectives (RG_EXT_COLLECTIVES) add in ascending order of rank */
  /* Receives whose buffers overlap, adding or not, take effect in the order in which they were posted. Without this
   * flag the engine posts a receive only once no earlier one into the same bytes is outstanding; to a transport with
   * RG_P2P_ORDERED it posts all in the strategy's order, and strategies must not overlap them. */
  RG_CAP_ORDERED_RECEIVES = 1024
};

/* INDEPENDENT: lanes do not block each other. ORDERED: the transport orders the messages of all lanes in one queue, as
 * NCCL does; strategies with RG_PLAN_INDEPENDENT are refused. NONE: its send() and recv() refuse every transfer;
 * strategies that exchange messages are refused. */
enum { RG_P2P_INDEPENDENT = 1, RG_P2P_ORDERED = 2, RG_P2P_NONE = 3 };

typedef struct rg_transport_caps {
  uint32_t struct_size;
  uint32_t flags;       /* RG_CAP_* */
  uint32_t memory;      /* bit mask of the RG_MEMORY_* that it can send from and receive into; not 0 */
  uint32_t p2p;         /* RG_P2P_* */
  uint32_t own_threads; /* threads that the transport runs; the engine counts each as one core */
  const char* device;   /* with RG_MEMORY_DEVICE: the kind of device, as rg_executor.device; null: any kind */
} rg_transport_caps;

/* Bytes. The size of this struct never changes. */
typedef struct rg_blob {
  const void* data;
  uint64_t bytes;
} rg_blob;

/* Numeric addresses of the network interfaces (rails) of one rank's host, at least one: those of the setting
 * cluster.interface. */
typedef struct rg_addresses {
  uint32_t struct_size;
  uint32_t count;
  const char* const* texts; /* [count] */
} rg_addresses;

/* The ranks of a run, as one rank sees them. Valid, with all that it points to, until close() or destroy() returns. */
typedef struct rg_world {
  uint32_t struct_size;
  uint32_t rank, size;
  uint32_t lanes;        /* number of lanes; lane 0 is the most urgent */
  const uint32_t* peers; /* the ranks that this rank exchanges messages with, ascending, without itself */
  uint32_t peer_count;
  const uint32_t* host_of; /* [size]: for each rank the number of its host */
  /* [address_count] Those of this rank: the transport listens on the first one or on all. See rg_addresses. */
  const char* const* addresses;
  uint32_t address_count;
  const rg_addresses* addresses_of; /* [size] for each rank its addresses; since 1.1, null before */
} rg_world;

enum { RG_TRANSFER_ADD = 1 }; /* receive: add to the buffer instead of overwriting it; requires RG_CAP_ADD, RG_F32 */

typedef struct rg_transfer {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t peer, lane;
  /* send: the message; receive: its destination, at least as long as the message. The count may be 0: a message without
   * bytes is delivered like any other. The memory is valid and, in a send, unchanged until the operation completes. */
  rg_buffer buffer;
  uint64_t bytes;  /* of the buffer; a transport therefore need not know its type, unless it adds or converts */
  void* address;   /* of the buffer's first byte; null for ghosts */
  rg_fence after;  /* on devices: access the bytes only after this fence has passed; 0 on the host */
  uint64_t cookie; /* returned in the completion */
  uint32_t wire;   /* RG_F16, RG_BF16 (memory is RG_F32; needs RG_CAP_CONVERT): wire type; 0: the same as in memory */
} rg_transfer;

/* Messages since create() and their bytes: payloads and the headers that the transport adds itself. Its handshake, and
 * the headers of the layers below it, such as TCP's, are not counted. */
typedef struct rg_counters {
  uint32_t struct_size;
  uint64_t bytes_sent, bytes_received;
  uint64_t messages_sent, messages_received;
} rg_counters;

/* Every buffer that a transfer or a collective names lies in a region that was registered before (ext/regions.h), also
 * where it has no elements. A barrier names none.
 *
 * Guarantees of a transport, on which strategies build:
 *  - Messages of one peer, lane and direction are delivered in order. Lanes never block each other
 *    (RG_P2P_INDEPENDENT), and sends never block receives.
 *  - The k-th send to a peer on a lane matches the k-th receive there. A transport may complete a send before its
 *    receive is posted, or only afterwards; a strategy must depend on neither. A message may be shorter than its
 *    receive. A message that is longer fails the receive with any RG_E_*, and no byte behind the receive's buffer is
 *    written; the send may succeed, unless the transport has RG_CAP_LONG_FAILS_SENDER. The transport may treat the peer
 *    as lost afterwards.
 *  - Once a send has completed, its buffer may be changed; the receiver still gets the bytes as they were.
 *  - Every accepted operation completes exactly once, in a poll(), with its cookie and RG_OK or an error (RG_E_*), in
 *    any order, also within a lane. A receive completes with at most as many bytes as its buffer has room for. If a
 *    transport violates this, the engine ends the run with an error that names the transport.
 *  - If a peer is lost, the operations with it complete with RG_E_PEER, and later ones are refused with RG_E_PEER.
 *    Operations with other peers go on.
 *  - Operations progress only while the engine calls one of these functions, and on the threads that own_threads
 *    declares. */
typedef struct rg_transport {
  uint32_t struct_size;
  /* [main] [required] Creates an instance. The engine also creates instances only to call caps(), without listen. The
   * instance must therefore ask for the resources of the host in listen, not here. */
  rg_status (*create)(const rg_host* host, const rg_value* values, void** self);
  /* [main] [required] Ends the instance. Also called without close, after a failed listen or connect, and with
   * operations outstanding, which then end without a completion. */
  void (*destroy)(void* self);
  /* [main] [required] Writes what the instance can do. Called before listen; the answer does not change. */
  rg_status (*caps)(void* self, rg_transport_caps* out);
  /* [main] [required] Opens the medium for peers to connect. The engine passes the bytes of `*blob` to connect() of
   * every peer; they stay valid until connect() of this instance returns. */
  rg_status (*listen)(void* self, const rg_world* world, rg_blob* blob);
  /* [main] [required] Connects to all of rg_world.peers; called on all ranks at the same time. blobs[r], for r from 0
   * to size - 1, are the bytes that listen() of rank r wrote; a transport that opens another one may pass it empty
   * blobs for ranks that are no peers. Fails with RG_E_PEER, not RG_TIMEOUT, if a peer is not connected within
   * `timeout_ns`; the text names the rank. */
  rg_status (*connect)(void* self, const rg_blob* blobs, uint64_t timeout_ns);
  /* [loop] [required] Submits a send. Returns without waiting: RG_OK if the transport accepted it, and poll() will
   * report its completion; RG_AGAIN if there is no room now; an error if it is refused. Without RG_OK no completion
   * follows. */
  rg_status (*send)(void* self, const rg_transfer* transfer);
  /* [loop] [required] Submits a receive. Returns as send() does. */
  rg_status (*recv)(void* self, const rg_transfer* transfer);
  /* [loop] [required] Moves bytes, and writes up to `capacity` completions to `out` and their number to `*count`. If no
   * operation has completed, it waits for up to `timeout_ns` (0: not at all; UINT64_MAX: without a limit); of this time
   * it spins for the first `spin_ns`. Returns RG_OK also if none completed in that time. An operation that fails is no
   * error of poll(): its completion has the status. */
  rg_status (*poll)(void* self, uint64_t timeout_ns, uint64_t spin_ns, rg_completion* out, uint32_t capacity,
                    uint32_t* count);
  /* [any] [required] From create() on. Ends the poll() that is running; if none is running, the next poll() does not
   * wait. */
  void (*wake)(void* self);
  /* [loop] [required] Gives `peer` up: later polls report RG_E_CANCELLED for every operation with it, once the medium
   * can no longer access its memory. Later sends to it and receives from it are refused with an error. */
  rg_status (*cancel)(void* self, uint32_t peer);
  /* [main] [required] Disconnects, after waiting until all sent messages have arrived. Requires: no operation is
   * outstanding. Returns RG_TIMEOUT if they have not arrived within `timeout_ns`. Peers that were lost before
   * are not waited for, and are no error. Only destroy() follows. */
  rg_status (*close)(void* self, uint64_t timeout_ns);
  /* [loop] [required] Writes the traffic since create() to `*out`. */
  rg_status (*counters)(void* self, rg_counters* out);
  /* [loop] [optional: the time is real; required with RG_CAP_VIRTUAL] Returns the virtual time in nanoseconds. */
  uint64_t (*now)(void* self);
  /* [any] [optional: the instance has no extensions] Returns this instance's table of functions with this id, or null
   * if it has none. */
  const void* (*extension)(void* self, const char* id);
} rg_transport;

#ifdef __cplusplus
}
#endif
#endif

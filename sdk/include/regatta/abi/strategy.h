/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam of strategies: what the engine offers them, and what it calls. The rules are those of abi.h.
 */
#ifndef REGATTA_ABI_STRATEGY_H
#define REGATTA_ABI_STRATEGY_H

#include <regatta/abi/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ranks 0 .. workers-1 are workers. Servers have ranks of their own after them, or, co-located, server k shares rank k. */
typedef struct rg_cluster {
  uint32_t struct_size;
  uint32_t size; /* ranks in all */
  uint32_t workers, servers;
  const uint32_t* server_rank; /* rank of every server */
  const uint32_t* host_of;     /* number of the host of every rank */
  uint32_t rank;               /* this one; UINT32_MAX in plan() and talks() */
  int32_t worker;              /* its number as a worker, -1: it is none */
  int32_t server;              /* its number as a server, -1: it is none */
  /* In plan() what rg_strategy_host will say in create(): RG_HOST_DEFERRED, and the momentum's coefficient, 0: none. What
   * cannot be with these is refused there, before anything starts. Else 0. */
  uint32_t flags;
  double momentum;
} rg_cluster;

enum {
  RG_PLAN_SERVERS = 1,     /* needs at least one server; without this flag none is started */
  RG_PLAN_SYNCHRONOUS = 2, /* after end_step all workers have the same weights */
  RG_PLAN_INDEPENDENT = 4, /* needs lanes that do not block each other: not over an ordered transport */
  RG_PLAN_BYTES = 8,       /* works on bytes outside the host's arithmetic: not simulated with ghosts */
  RG_PLAN_ROWS = 16,       /* exchanges the rows of sparse tables; without it, models that have some are refused */
  RG_PLAN_MOMENTUM = 32, /* does the momentum itself: the optimiser's coefficient is handed over, its own part is sgd */
  /* Sends messages shorter than their receives, an empty one as a goodbye, say. Where it does so for the rows of sparse
   * tables alone, it need not say it. */
  RG_PLAN_SHORT = 64,
  /* Not synchronous, but workers wait for each other, if only in some step of every period: no such step s ends before all
   * workers have computed step s - rg_plan.bound. Time that a worker is blocked until then is the slowest worker's. */
  RG_PLAN_BOUNDED = 128,
  /* Not synchronous, but all workers have the same weights after finish: the engine compares them. */
  RG_PLAN_AGREES = 256,
  RG_PLAN_COLLECTIVES = 512, /* needs collectives of the transport's own (RG_EXT_COLLECTIVES) */
  RG_PLAN_EQUAL_HOSTS = 1024 /* needs several hosts with equally many workers, where there are several workers */
};

typedef struct rg_plan {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t lanes;
  uint32_t reserved;
  uint64_t period;      /* steps after which its behaviour repeats: a measurement covers whole periods; 0: 1 */
  uint64_t steady_from; /* first step that is representative */
  uint64_t bound;       /* RG_PLAN_BOUNDED: steps that a worker may be ahead of the slowest */
} rg_plan;

/* The weights and gradients: one region each, dense tensors in the order in which their gradients become ready. */
typedef struct rg_slice {
  uint32_t struct_size;
  uint32_t tensor; /* index into rg_arena.tensors */
  uint64_t first;  /* its first element in the arena; a multiple of 16 */
  uint64_t count;  /* elements, its padding included */
} rg_slice;

/* A sparse table, as this rank's step sees it: windows that hold the rows of one batch, in the host's memory wherever the
 * arena is. */
typedef struct rg_table {
  uint32_t struct_size;
  uint32_t tensor;     /* index into rg_arena.tensors */
  uint64_t rows, row;  /* rows of the whole table; elements of one */
  uint64_t max_rows;   /* of one step */
  rg_buffer numbers;   /* RG_I64 [max_rows]: the rows of this step; begin_step says how many. Region 0: no worker */
  rg_buffer weights;   /* RG_F32 [max_rows, row]: to be in place when begin_step is done */
  rg_buffer gradients; /* RG_F32 [max_rows, row]: complete when end_step is called */
} rg_table;

typedef struct rg_arena {
  uint32_t struct_size;
  uint32_t slice_count;
  uint64_t count;    /* elements */
  rg_buffer weights; /* RG_F32; region 0 on a rank that is no worker */
  rg_buffer gradients;
  const rg_slice* slices; /* one a dense tensor, ascending and without gaps */
  const rg_tensor* tensors;
  uint32_t tensor_count;
  uint32_t table_count;
  const rg_table* tables;
} rg_arena;

typedef enum rg_op_kind {
  RG_OP_SEND = 1,       /* source to peer */
  RG_OP_RECV = 2,       /* target from peer; peer may be this rank itself, in both */
  RG_OP_ALL_REDUCE = 3, /* target, in place, over `group`; only where split() succeeded */
  RG_OP_FILL = 4,       /* target = a; with `index` (RG_I32) only the elements that it names */
  RG_OP_COPY = 5,       /* target = source */
  RG_OP_AXPY = 6,       /* target += a * source; with `index` (RG_I32) only to the elements that it names */
  RG_OP_SCALE = 7,      /* target *= a */
  /* The optimiser's step on the owned elements first .. first + source.count: `source` is their gradient, summed over
   * all workers. Where updates are deferred (RG_HOST_DEFERRED) it only takes part in the norm, and source must stay as it
   * is until the commit. */
  RG_OP_APPLY = 8,
  /* target (2 x RG_F64) = {elements that are not finite, sum of squares} of what this rank applied since the last commit. */
  RG_OP_NORM = 9,
  RG_OP_COMMIT = 10, /* source: the NORM of all owners, added up; does the deferred updates, or skips them all */
  RG_OP_TIMER = 11,  /* completes `a` nanoseconds from now */
  /* Sparse tables: what this rank holds of `table` (own_rows), by number. `index` (RG_I64) are n row numbers, unique,
   * each one owned; values are RG_F32 [n, row]. Rows start as the model's init says, made when first asked for. */
  RG_OP_ROWS_READ = 12, /* target = the rows' weights */
  RG_OP_ROWS_ADD = 13,  /* the rows' pending gradients += source; sums take the order of the calls */
  /* The optimiser's step on every row with a pending gradient, which is thereby used up; with an index, after a ROWS_ADD
   * of `source`. Where updates are deferred it takes part in the norm, and nothing may be added until the commit. */
  RG_OP_ROWS_APPLY = 14,
  RG_OP_ROWS_WRITE = 15, /* the rows' weights += a * source; no optimiser */
  /* Row by row, with rows of target.count / index.count (source.count / index.count) elements. */
  RG_OP_GATHER = 16,  /* target[i] = source[index[i]] */
  RG_OP_SCATTER = 17, /* target[index[i]] = source[i]; with RG_OP_ADD added */
  /* target = source, of another type: RG_F32, RG_F16, RG_BF16; rounds to nearest even. Of one type, RG_F32, with `wire`:
   * rounded as that type would, as who keeps his own copy of what he sends must. */
  RG_OP_CONVERT = 18,
  /* What compresses gradients. `index` is RG_I32: elements of a buffer, unique, ascending.
   * TOP_K: index, target = places and values of the target.count elements of source that are largest by magnitude, of
   * equal ones those that come first.
   * SELECT: likewise of all with a magnitude above a; more than target.count are an error. Never RG_DONE: the
   * completion's bytes are those of the values that were found. */
  RG_OP_TOP_K = 19,
  RG_OP_SELECT = 20,
  RG_OP_CLIP = 21,       /* target *= min(1, a / its Euclidean norm) */
  RG_OP_ACCUMULATE = 22, /* target = a * target + source; index (RG_F32) += target: momentum, and its sum */
  /* As ALL_REDUCE; rg_collectives says what each does. Where rg_strategy_host.native has them. */
  RG_OP_REDUCE_SCATTER = 23,
  RG_OP_ALL_GATHER = 24, /* any type */
  RG_OP_BROADCAST = 25   /* any type; peer: the root's place among the group's members */
} rg_op_kind;

enum {
  RG_OP_ADD = 1,       /* RECV: add to the target (RG_F32, RG_F64) instead of overwriting it */
  RG_OP_AS_SERVER = 2, /* APPLY, NORM, COMMIT, ROWS_*: what this rank owns as a server, not as a worker */
  /* ROWS_READ of all rows of a step into their table's window, whose weights the strategy does not look at: a model that
   * can (RG_MODEL_ROWS_IN_PLACE) is shown them where they lie, and none is copied. They stay as they are until the model
   * has ended its step. */
  RG_OP_SHOW = 4
};

typedef struct rg_op {
  uint32_t struct_size;
  uint32_t kind;
  uint64_t cookie;
  uint32_t flags;
  uint32_t peer, lane, group;
  rg_buffer target, source;
  uint64_t first; /* APPLY: element of the arena */
  uint64_t step;  /* APPLY, COMMIT: global step */
  double a;
  rg_fence after;
  rg_buffer index; /* ROWS_*, GATHER, SCATTER: RG_I64; others as they say */
  uint32_t table;  /* ROWS_*: index into rg_arena.tables */
  uint32_t wire;   /* SEND, RECV: rg_type on the wire where it is another than in memory (RG_F32 only); 0: the same */
} rg_op;

enum { RG_HOST_DEFERRED = 1 }; /* updates wait for RG_OP_COMMIT (clipping by global norm) */

/* What the engine gives a strategy. Time passes and things finish only through it: no clock, sleep or thread of one's
 * own, so that the same code runs under a virtual clock. All functions are [loop], and [main] within create. */
typedef struct rg_strategy_host {
  uint32_t struct_size;
  uint32_t flags; /* RG_HOST_* */
  const rg_host* host;
  void* context;
  const rg_cluster* cluster;
  const rg_arena* arena;
  uint64_t seed;
  uint64_t (*now)(void* context);
  /* [main] A region of its own for exchanges, zeroed; lives as long as the instance. */
  rg_status (*alloc)(void* context, uint32_t type, uint64_t count, rg_buffer* out);
  /* [main] This rank updates elements first .. first + count of the arena: the engine keeps the optimiser's state for
   * them. `weights` is where they live: a worker's are part of its arena; a server's are memory of its own, started as
   * the model says. `as_server`: 0 as the worker, 1 as the server. Ranges do not overlap. */
  rg_status (*own)(void* context, uint32_t as_server, uint64_t first, uint64_t count, rg_buffer* weights);
  /* [main] on_gradient is called when elements up to ends[k] are final, for each k. Ascending; the last is arena.count. */
  rg_status (*buckets)(void* context, const uint64_t* ends, uint32_t count);
  /* [main] A group for native collectives; RG_E_UNSUPPORTED where the transport has none. Same order on all members. */
  rg_status (*split)(void* context, const uint32_t* members, uint32_t count, uint32_t* group);
  /* Begins an operation. RG_OK: its cookie comes to completed() later. RG_DONE: it is finished. Buffers are borrowed
   * until then. Operations on the same buffer are not ordered by the engine, but transfers on one lane are FIFO. */
  rg_status (*submit)(void* context, const rg_op* op);
  /* The activity that a begin_step, end_step, serve, finish or pull_rows began is over. */
  void (*done)(void* context, uint64_t activity, rg_status status);
  /* [main] This rank holds the rows r of a table with r mod shards == shard, their optimiser's state and pending gradients. */
  rg_status (*own_rows)(void* context, uint32_t as_server, uint32_t table, uint64_t shards, uint64_t shard);
  /* Host memory behind a buffer, for host code; RG_E_UNSUPPORTED for ghosts, and for a device's. */
  rg_status (*pointer)(void* context, const rg_buffer* buffer, void** out);
  /* Elements [first, arena.count) of the weights may be read; what lies before is still coming. Called within end_step
   * (with arena.count, say) it lets the next step begin before all weights are there: a model's forward pass reads them
   * from the arena's end to its beginning. Calls only lower it; 0: all are there. Without a call all are, after end_step. */
  void (*weights_from)(void* context, uint64_t first);
  /* Something worth reporting, by name: counts how often each value was seen (the staleness of a push), or adds up (the
   * time spent encoding). In the timed region only; shown in the result. */
  void (*record_value)(void* context, const char* name, int64_t value);
  void (*record_sum)(void* context, const char* name, double amount);
  double momentum; /* RG_PLAN_MOMENTUM: the optimiser's coefficient */
  uint64_t native; /* bit k: the transport does operations of kind k (RG_OP_ALL_REDUCE, ...) over groups */
  /* [main] As alloc, but of the host's memory wherever the arena is, for the numbers of rows and what goes with them:
   * operations on rows name nothing else. No operation names buffers of both kinds. Null: alloc() does it. */
  rg_status (*alloc_on_host)(void* context, uint32_t type, uint64_t count, rg_buffer* out);
  /* As record_value, of a value that belongs to one step of one worker, recorded on any rank: it is shown only if that
   * step counts, which under asynchronous strategies the first worker to finish decides. Null: record_value() does it. */
  void (*record_of_step)(void* context, const char* name, int64_t value, uint32_t worker, uint64_t step);
} rg_strategy_host;

typedef struct rg_strategy {
  uint32_t struct_size;
  uint32_t reserved;
  /* [any] Pure: depends on its arguments alone. Refuses what it cannot do with RG_E_CONFIG. */
  rg_status (*plan)(const rg_host* host, const rg_value* values, const rg_cluster* cluster, rg_plan* out);
  /* [any] Pure and symmetric: whether ranks a and b ever exchange a message. */
  uint32_t (*talks)(const rg_value* values, const rg_cluster* cluster, uint32_t a, uint32_t b);
  /* [main] On every rank, the transport connected; allocates, owns, splits, sets buckets. */
  rg_status (*create)(const rg_strategy_host* host, const rg_value* values, void** self);
  void (*destroy)(void* self); /* [main] no completion follows */
  /* [loop] Each begins an activity and returns; host->done(activity) ends it. Null: it is over at once. */
  rg_status (*begin_step)(void* self, uint64_t step, const rg_rows* rows, uint32_t tables, uint64_t activity);
  rg_status (*end_step)(void* self, uint64_t step, uint64_t activity); /* done: the next step's forward pass may go */
  rg_status (*serve)(void* self, uint64_t activity);  /* servers, from the start; done: every worker said goodbye */
  rg_status (*finish)(void* self, uint64_t activity); /* workers, after the last step; done: weights are final */
  /* [loop] Elements up to the bucket's end hold this step's gradients. `fence`: on devices, from when on. */
  rg_status (*on_gradient)(void* self, uint64_t step, uint32_t bucket, rg_fence fence);
  /* [loop] What was submitted has ended; never called within submit. */
  rg_status (*completed)(void* self, const rg_completion* completions, uint32_t count);
  /* [loop] An activity like begin_step, between steps: brings the weights of rows into the windows of the tables, for an
   * evaluation. Null where RG_PLAN_ROWS is not set. */
  rg_status (*pull_rows)(void* self, const rg_rows* rows, uint32_t tables, uint64_t activity);
} rg_strategy;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of strategies: what the engine offers to a strategy, and the functions of a strategy that it calls. The
 * rules of abi.h hold.
 */
#ifndef REGATTA_ABI_STRATEGY_H
#define REGATTA_ABI_STRATEGY_H

#include <regatta/abi/model.h>
#include <regatta/abi/operations.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ranks of a run. Ranks 0 .. workers - 1 are workers. Servers have the ranks after them; if co-located, server k
 * has the same rank as worker k, as long as there is such a worker. */
typedef struct rg_cluster {
  uint32_t struct_size;
  uint32_t size; /* number of ranks */
  uint32_t workers, servers;
  const uint32_t* server_rank; /* [servers]: the rank of each server */
  const uint32_t* host_of;     /* [size]: the number of each rank's host */
  uint32_t rank;               /* this rank; UINT32_MAX in plan() and talks() */
  int32_t worker;              /* this rank's number as a worker; -1: it is no worker */
  int32_t server;              /* this rank's number as a server; -1: it is no server */
  /* RG_HOST_* flags. In plan(), those that rg_strategy_host.flags will have, so that plan() can refuse what the
   * strategy cannot do with them before anything starts. In talks(), RG_HOST_TABLES or 0. Else 0. */
  uint32_t flags;
  /* Only in plan(), else 0: the optimizer's momentum coefficient; 0: the optimizer has no momentum. */
  double momentum;
} rg_cluster;

enum {
  RG_PLAN_SERVERS = 1,     /* needs at least one server; without this flag no server is started */
  RG_PLAN_SYNCHRONOUS = 2, /* all workers have the same weights after end_step */
  RG_PLAN_INDEPENDENT = 4, /* needs lanes that do not block each other (RG_P2P_INDEPENDENT) */
  /* Reads or writes the bytes of buffers itself, through pointer(). Refused with ghosts, which have no bytes;
   * `regatta simulate` then keeps the bytes. Not needed for row numbers: if the model has sparse tables, RG_I64 in host
   * memory has bytes there, too. */
  RG_PLAN_BYTES = 8,
  /* Exchanges the rows of sparse tables. Without this flag, models with sparse tables are refused. */
  RG_PLAN_ROWS = 16,
  /* Applies the momentum itself: rg_strategy_host.momentum is the optimizer's coefficient, and the engine's updates are
   * plain SGD. The experiment's optimizer must be `sgd`, or `momentum` without Nesterov; any other is refused. */
  RG_PLAN_MOMENTUM = 32,
  /* Sends messages that are shorter than their receives, e.g. an empty one as a goodbye. Not needed if it does so for
   * the rows of sparse tables only. */
  RG_PLAN_SHORT = 64,
  /* Not synchronous, but workers wait for each other in some or all steps: such a step s ends only after all workers
   * have computed step s - rg_plan.bound. The result shows time that a worker is blocked until then as wait, not as
   * communication. */
  RG_PLAN_BOUNDED = 128,
  /* Not synchronous, but all workers have the same weights after finish; the engine checks that they are equal. */
  RG_PLAN_AGREES = 256,
  RG_PLAN_COLLECTIVES = 512, /* needs a transport that offers an all-reduce, of RG_F32 and RG_SUM */
  /* If there are several workers, needs several hosts with the same number of workers on each. */
  RG_PLAN_EQUAL_HOSTS = 1024,
  /* Only with RG_PLAN_SYNCHRONOUS: a step applies an approximation of the summed gradients, e.g. a compressed one. Over
   * many steps the mean of what is applied must approach the mean sum: the strategy sends the error of a step in later
   * ones (error feedback), or its errors average out (unbiased). Without this flag every synchronous step applies the
   * sum itself, rounded as fp32. */
  RG_PLAN_LOSSY = 2048,
  /* Training can go on from a checkpoint between two steps: it needs each worker's weights, the optimizer's state and
   * what save() writes, and then gives the weights of an uninterrupted run, to the bit. Engines of 1.0 write no
   * checkpoints; `regatta check` tests the promise. */
  RG_PLAN_RESUMES = 4096,
  /* The other ranks can go on after a rank has died: left() says which one. Without this flag a death ends the run; in
   * engines of 1.0 it does so with the flag, too. `regatta check` tests the promise. */
  RG_PLAN_SURVIVES = 8192,
  /* Reads gradients and weights as matrices: dense tensors must be row-major in memory (rg_tensor.reordered is 0). The
   * engine tells the executor (rg_model_setup.row_major), and refuses a model that keeps another layout. */
  RG_PLAN_ROW_MAJOR = 16384
};

/* Which ranks behave alike, so that a simulation may compute one of them for all;
 * `regatta check` tests the promise. A renaming of ranks leaves the run as it is if between renamed ranks, on each
 * lane, as many messages go in every step as between the ranks themselves, with the same lengths up to the rounding of
 * part_of() (chunks of 16 elements). Models with sparse tables, stragglers and unequal links are left out of account.
 */
enum {
  RG_SYMMETRY_NONE = 0,
  RG_SYMMETRY_CLASSES = 1,  /* any two workers may change places, and any two servers; co-located ones as a pair */
  RG_SYMMETRY_ROTATION = 2, /* each worker w may become w + 1, the last one worker 0; there are no servers */
  RG_SYMMETRY_XOR = 3, /* each worker w may become w ^ k, for each k below their number, a power of two; no servers */
  /* Each host may become the next one, with all its workers in their order, the last host the first one. Hosts have
   * equally many workers, and there are no servers. Engines of 1.0 do not know it, and simulate all ranks. */
  RG_SYMMETRY_HOSTS = 4
};

typedef struct rg_plan {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t lanes;  /* lanes that the strategy uses: 1 to 256; 0 only if no ranks exchange messages */
  uint64_t period; /* the behaviour repeats after so many steps; the timed region covers whole periods; 0 means 1 */
  uint64_t steady_from; /* the first step that may be timed: warm-up lasts at least so many steps */
  uint64_t bound;       /* RG_PLAN_BOUNDED: how many steps a worker may be ahead of the slowest one */
  uint32_t symmetry;    /* RG_SYMMETRY_* */
} rg_plan;

/* The place of a dense tensor in the arena. */
typedef struct rg_slice {
  uint32_t struct_size;
  uint32_t tensor; /* index into rg_arena.tensors */
  uint64_t first;  /* the tensor's first element in the arena; a multiple of 16 */
  uint64_t count;  /* number of elements, including the tensor's padding */
} rg_slice;

/* A sparse table as one rank's step sees it. `numbers`, `weights` and `gradients` are the table's windows: buffers in
 * host memory, wherever the arena is, that hold the rows of one step from their first element on. On a rank that is no
 * worker all three have region 0. */
typedef struct rg_table {
  uint32_t struct_size;
  uint32_t tensor;     /* index into rg_arena.tensors */
  uint64_t rows, row;  /* number of rows of the whole table; elements in one row */
  uint64_t max_rows;   /* the largest number of rows in one step, all micro-batches together */
  rg_buffer numbers;   /* RG_I64 [max_rows]: the row numbers of this step; begin_step passes their count */
  rg_buffer weights;   /* RG_F32 [max_rows, row]: must hold the rows' weights when the activity of begin_step ends */
  rg_buffer gradients; /* RG_F32 [max_rows, row]: hold the rows' gradients when end_step is called */
} rg_table;

/* The arena: all dense weights in one region, and all their gradients in another. Both have the tensors in the order in
 * which their gradients become ready. Sparse tables are described beside it. Valid as long as the instance. */
typedef struct rg_arena {
  uint32_t struct_size;
  uint32_t slice_count;
  uint64_t count;    /* elements of the weights; the gradients have as many */
  rg_buffer weights; /* RG_F32, as the gradients; both have region 0 on a rank that is no worker, and if count is 0 */
  rg_buffer gradients;
  const rg_slice* slices; /* one for each dense tensor, ascending and without gaps */
  const rg_tensor* tensors;
  uint32_t tensor_count;
  uint32_t table_count;
  const rg_table* tables;
} rg_arena;

enum {
  /* Updates wait for RG_OP_COMMIT: optimizer.clip_norm is set, or train.precision is "fp16", whose steps may be
   * dropped. */
  RG_HOST_DEFERRED = 1,
  /* Not in plan(): weights and gradients are ghosts of host memory, as in a simulated run. Since 1.1. */
  RG_HOST_GHOSTS = 2,
  /* Only in talks(): the model has sparse tables, whose rows may go between other ranks than gradients do. Since
   * 1.1. */
  RG_HOST_TABLES = 4
};

/* The functions that the engine offers to a strategy. A strategy may measure time, wait and be notified only through
 * them, and must not use a clock, a sleep or a thread otherwise. The same code therefore runs under a virtual clock.
 * All functions are called in [loop], and within create(); those marked [main] within create() only. A wrong argument
 * is RG_E_PLUGIN, with a text that the engine has recorded already. Names are copied. */
typedef struct rg_strategy_host {
  uint32_t struct_size;
  uint32_t flags; /* RG_HOST_* */
  const rg_host* host;
  void* context;
  const rg_cluster* cluster; /* valid as long as the instance, with all that it points to */
  const rg_arena* arena;
  uint64_t seed;                  /* the run's seed */
  uint64_t (*now)(void* context); /* the time in nanoseconds, virtual under a virtual clock */
  /* [main] Allocates a buffer in a new region, zeroed, where the arena is (host or device). It lives as long as the
   * instance. */
  rg_status (*alloc)(void* context, uint32_t type, uint64_t count, rg_buffer* out);
  /* [main] Makes this rank the owner of elements [first, first + count) of the arena, at least one: this rank updates
   * them, and the engine keeps the optimizer's state for them. `role`: one of RG_ROLE_*. Writes to `*weights` where
   * the owned weights are: for a worker a part of its arena, for a server separate memory with the
   * model's initial values. The ranges that a rank owns in one role must not overlap. */
  rg_status (*own)(void* context, uint32_t role, uint64_t first, uint64_t count, rg_buffer* weights);
  /* [main] Cuts the arena into buckets: on_gradient is called for bucket k once the gradients of all elements before
   * ends[k] are final. `ends` is strictly ascending, and its last element is arena.count. Without a call the arena is
   * one bucket. */
  rg_status (*buckets)(void* context, const uint64_t* ends, uint32_t count);
  /* [main] Creates a group of `members`, ranks in ascending order, for the transport's collectives; all members call it
   * in the same order. Fails with RG_E_UNSUPPORTED if the transport has no collectives, or none for these members: the
   * strategy may go on without. */
  rg_status (*split)(void* context, const uint32_t* members, uint32_t count, uint32_t* group);
  /* Begins an operation; `op` is copied. Returns RG_OK if the operation is under way: completed() reports its end, with
   * its cookie. Returns RG_DONE if it has ended and completed() does not report it; on a device, if it is enqueued so
   * that later operations come after it. An error: the operation was refused. Until it has ended, the strategy must not
   * change its sources or use its targets. Transfers with one peer on one lane are in order; other operations on the
   * same buffer have no order, and the strategy must wait between them. */
  rg_status (*submit)(void* context, const rg_op* op);
  /* Ends an activity: the one that begin_step, end_step, serve, finish or pull_rows began with this number, once. May
   * be called within that function, before it returns. An error as `status` ends the run. */
  void (*done)(void* context, uint64_t activity, rg_status status);
  /* [main] Makes this rank the holder of the rows r of a table with r mod shards == shard, of their pending gradients
   * and of the optimizer's state for them. */
  rg_status (*own_rows)(void* context, uint32_t role, uint32_t table, uint64_t shards, uint64_t shard);
  /* Writes the host address of a buffer's first byte to `*out`, valid as long as the instance. Fails with
   * RG_E_UNSUPPORTED for ghosts (see RG_PLAN_BYTES) and for memory of a device. */
  rg_status (*pointer)(void* context, const rg_buffer* buffer, void** out);
  /* Allows the model to read elements [first, arena.count) of the weights; the elements before are still to come. A
   * strategy that calls it before it ends the activity of end_step lets the next step begin before all weights have
   * arrived (with first = arena.count before any has): the forward pass reads weights from the arena's end to its
   * beginning. In further calls `first` only falls; 0: all weights are there, and the next backward pass waits for
   * that. Without a call, all weights must be there when the activity of end_step ends. */
  void (*weights_from)(void* context, uint64_t first);
  /* Record figures for the result, by name; those recorded outside the timed region are dropped. record_value counts
   * how often each value occurred on all ranks (e.g. the staleness of a push); record_sum adds up amounts (e.g. the
   * seconds spent encoding), of which the result has the sum per step, as a mean over the ranks that recorded it. The
   * names of counted values that begin with "algorithm_" are part of the case's fingerprint: a strategy that chooses
   * among algorithms records such a name for the one that it runs. */
  void (*record_value)(void* context, const char* name, int64_t value);
  void (*record_sum)(void* context, const char* name, double amount);
  double momentum; /* RG_PLAN_MOMENTUM: the optimizer's coefficient */
  /* Returns 1 if the transport has the collective `kind` (RG_OP_ALL_REDUCE, ...) with this reduction (0 if it has
   * none), type of elements and wire type, else 0. */
  uint32_t (*offers)(void* context, uint32_t kind, uint32_t reduction, uint32_t type, uint32_t wire);
  /* [main] As alloc, but always in host memory: for row numbers and the values of rows, since the operations on
   * rows accept only host memory. No operation accepts buffers of both kinds. */
  rg_status (*alloc_on_host)(void* context, uint32_t type, uint64_t count, rg_buffer* out);
  /* As record_value, for a value that belongs to one step of one worker; any rank may record it. The result has it only
   * if that step is in the timed region, which in asynchronous strategies ends when the first worker has finished. */
  void (*record_of_step)(void* context, const char* name, int64_t value, uint32_t worker, uint64_t step);
} rg_strategy_host;

/* The state that a strategy keeps from step to step, such as a residual, on its way to or from a checkpoint. save() and
 * load() call these functions with the same names, lengths and types in the same order; each rank has a checkpoint of
 * its own, and names are unique in it. Both functions are called within save() and load() only; they fail with
 * RG_E_CONFIG if the checkpoint has something else. */
typedef struct rg_state {
  uint32_t struct_size;
  void* context;
  /* In save() copies the elements of the buffer, on the host or on a device; in load() writes them to it. */
  rg_status (*buffer)(void* context, const char* name, const rg_buffer* buffer);
  /* The same with `size` bytes at `data`, for counters and other values of the strategy's own. */
  rg_status (*bytes)(void* context, const char* name, void* data, uint64_t size);
} rg_state;

typedef struct rg_strategy {
  uint32_t struct_size;
  /* [any] [required] Describes what the strategy needs and does. Depends on its arguments alone, and rg_plan.flags not
   * on the numbers of workers and servers. Called in the coordinator and on every rank, without an instance. Fails with
   * RG_E_CONFIG if the strategy cannot run so. */
  rg_status (*plan)(const rg_host* host, const rg_value* values, const rg_cluster* cluster, rg_plan* out);
  /* [any] [required] Returns 1 if ranks a and b ever exchange a message, else 0: ranks that do not are not connected.
   * Depends on its arguments alone and is symmetric. */
  uint32_t (*talks)(const rg_value* values, const rg_cluster* cluster, uint32_t a, uint32_t b);
  /* [main] [required] Creates an instance; called on every rank, with the transport connected. May call the [main]
   * functions of the host. */
  rg_status (*create)(const rg_strategy_host* host, const rg_value* values, void** self);
  /* [main] [required] No completion is reported afterwards */
  void (*destroy)(void* self);
  /* [loop] [optional: the activity ends at once] Each of the next four begins an activity and returns; the strategy
   * ends the activity with host->done(activity). begin_step, on workers, precedes the forward pass of a step; `rows`
   * has, for each of the `tables` sparse tables, the rows that the step touches, valid until the activity of end_step
   * ends. */
  rg_status (*begin_step)(void* self, uint64_t step, const rg_rows* rows, uint32_t tables, uint64_t activity);
  /* [loop] [optional: the activity ends at once] On workers, after the backward pass and the step's last on_gradient.
   * The next step begins when the activity ends. */
  rg_status (*end_step)(void* self, uint64_t step, uint64_t activity);
  /* [loop] [optional: the activity ends at once] On servers, from the start. The strategy ends the activity when no
   * worker needs the server any more; a co-located worker's steps run meanwhile. */
  rg_status (*serve)(void* self, uint64_t activity);
  /* [loop] [optional: the activity ends at once] On workers, after the last step. When the activity ends, the weights
   * are final. */
  rg_status (*finish)(void* self, uint64_t activity);
  /* [loop] [optional: not called] The elements of the arena's gradients up to the end of bucket `bucket` are final for
   * this step; on devices once `fence` has passed. Called once for each bucket, ascending, between begin_step and
   * end_step; the gradients keep their values until the activity of end_step ends. */
  rg_status (*on_gradient)(void* self, uint64_t step, uint32_t bucket, rg_fence fence);
  /* [loop] [required] Reports operations that have ended, also with an error. Never called within submit(). */
  rg_status (*completed)(void* self, const rg_completion* completions, uint32_t count);
  /* [loop] [optional: models with sparse tables cannot be evaluated] On workers. Begins an activity between steps: it
   * copies the weights of these rows into the windows of the tables, for an evaluation. `rows` is valid until the
   * activity ends. */
  rg_status (*pull_rows)(void* self, const rg_rows* rows, uint32_t tables, uint64_t activity);
  /* [loop] [optional: the strategy keeps no state; null if load is] save: on every rank, when every worker has ended
   * the activity of step `step` - 1 and has not begun step `step`, and no message is under way. It does not change the
   * state; training may go on. */
  rg_status (*save)(void* self, uint64_t step, const rg_state* to);
  /* [loop] [optional: as save] On every rank, at most once, after create() and before any other call, with weights and
   * optimizer state in place. The first step is then `step`, also for servers. */
  rg_status (*load)(void* self, uint64_t step, const rg_state* from);
  /* [loop] [optional: the strategy is not told, and RG_PLAN_SURVIVES has no effect] Another rank is gone; called once
   * for it, in any state. Its outstanding operations have been reported before, with RG_E_PEER, and later ones with it
   * end so. Surviving ranks hear of several deaths in any order. Engines of 1.0 call it in simulations and
   * checks only: a death ends a real run. */
  rg_status (*left)(void* self, uint32_t rank);
} rg_strategy;

#ifdef __cplusplus
}
#endif
#endif

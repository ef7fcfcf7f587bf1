/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations that a strategy submits to the engine (rg_strategy_host.submit): transfers, collectives, arithmetic,
 * the optimizer's updates, and rows of sparse tables. The rules of abi.h hold.
 *
 * Each operation is a struct that begins with an rg_op. Its kind says which struct it is; `op.struct_size` is the size
 * of the whole struct. Kinds are numbered by topic. Unless a comment says otherwise:
 *  - buffers are RG_F32, and those of one operation are in the same memory (host or device);
 *  - target and source have the same count;
 *  - an index that names an element outside the buffer is an error on the host and ignored on a device. */
#ifndef REGATTA_ABI_OPERATIONS_H
#define REGATTA_ABI_OPERATIONS_H

#include <regatta/abi/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The head of every operation. The size of this struct never changes. */
typedef struct rg_op {
  uint32_t struct_size; /* of the struct that this head begins */
  uint32_t kind;        /* rg_op_kind */
  uint64_t cookie;      /* returned in the completion */
  rg_fence after;       /* on devices: begin only after this fence has passed; 0: no further condition */
} rg_op;

typedef enum rg_op_kind {
  /* rg_op_transfer */
  RG_OP_SEND = 0x101,
  RG_OP_RECV = 0x102,
  /* rg_op_collective */
  RG_OP_ALL_REDUCE = 0x201,
  RG_OP_REDUCE_SCATTER = 0x202,
  RG_OP_ALL_GATHER = 0x203,
  RG_OP_BROADCAST = 0x204,
  RG_OP_REDUCE = 0x205,
  RG_OP_GATHER = 0x206,
  RG_OP_SCATTER = 0x207,
  RG_OP_ALL_TO_ALL = 0x208,
  RG_OP_BARRIER = 0x209,
  /* arithmetic: rg_op_fill, rg_op_copy, ... */
  RG_OP_FILL = 0x301,
  RG_OP_COPY = 0x302,
  RG_OP_AXPY = 0x303,
  RG_OP_SCALE = 0x304,
  RG_OP_CLIP = 0x305,
  RG_OP_ACCUMULATE = 0x306,
  RG_OP_CONVERT = 0x307,
  RG_OP_TOP_K = 0x308,
  RG_OP_SELECT = 0x309,
  RG_OP_GATHER_ROWS = 0x30a,
  RG_OP_SCATTER_ROWS = 0x30b,
  RG_OP_RUN = 0x30c,
  RG_OP_GEMM = 0x30d,
  /* the optimizer: rg_op_apply, rg_op_norm, rg_op_commit */
  RG_OP_APPLY = 0x401,
  RG_OP_NORM = 0x402,
  RG_OP_COMMIT = 0x403,
  /* rows of sparse tables: rg_op_rows_read, ... */
  RG_OP_ROWS_READ = 0x501,
  RG_OP_ROWS_ADD = 0x502,
  RG_OP_ROWS_APPLY = 0x503,
  RG_OP_ROWS_WRITE = 0x504,
  /* rg_op_timer */
  RG_OP_TIMER = 0x601
} rg_op_kind;

/* A rank that is both worker and server owns weights and rows in both roles; an operation names one. */
enum { RG_ROLE_WORKER = 1, RG_ROLE_SERVER = 2 };

enum { RG_OP_ADD = 1 }; /* RECV, SCATTER_ROWS: add to the target (RG_F32; RECV also RG_F64) instead of overwriting it */

/* ------------------------------------------------------------------------------------------ transfers, collectives */

/* SEND sends `buffer` to `peer`; RECV receives into it. Elements of any type. `peer` may be this rank itself;
 * the buffers of both operations are then in the same memory (host or device). */
typedef struct rg_op_transfer {
  rg_op op;
  uint32_t peer, lane;
  rg_buffer buffer;
  /* Of an RG_F32 buffer: the wire type (RG_F16, RG_BF16), equal in a send and its receive; 0: the type in memory. */
  uint32_t wire;
  uint32_t flags; /* RECV: RG_OP_ADD */
} rg_op_transfer;

/* A collective of the transport, which must offer it (rg_strategy_host.offers). All members of the group begin the
 * group's collectives in the same order, with the same kind, reduction, type, wire, root and counts. A buffer is in n
 * chunks, one for each of the n members, in ascending order of rank; "chunk" below is this rank's own one.
 *
 *                    source                           target
 *   ALL_REDUCE       all members' elements            their reduction, equal to the bit on all members
 *   REDUCE           all members' elements            at the root: their reduction
 *   REDUCE_SCATTER   all members' elements            chunk of their reduction
 *   BROADCAST        at the root: its elements        the root's elements
 *   ALL_GATHER       chunk                            the chunks of all members
 *   GATHER           chunk                            at the root: the chunks of all members
 *   SCATTER          at the root: all chunks          chunk
 *   ALL_TO_ALL       chunk k is for member k          chunk k is from member k
 *   BARRIER          none                             none; ends when all members have begun it
 *
 * Where "at the root" is said, the buffer of the other members is not used. Target and source do not overlap, or they
 * are the same (the collective is in place): ALL_REDUCE, REDUCE and BROADCAST have one buffer; the chunk of ALL_GATHER
 * and GATHER is where it belongs in the target; that of REDUCE_SCATTER and SCATTER is where it lies in the source.
 * ALL_TO_ALL is never in place. The source does not change, except of a REDUCE_SCATTER in place, whose other chunks are
 * undefined afterwards.
 *
 * With a wire type, elements are rounded to it, to nearest even. Where they are not reduced, every element of a target
 * is a rounded one, also in the chunk that a member has from itself. A maximum is that of the rounded elements. A sum
 * may be rounded after each addition, and a member may add its own elements before they are rounded: of n members it
 * differs from the sum of the rounded elements by at most (n + 1) u of the sum of their magnitudes, where u is 2^-8 of
 * RG_BF16, 2^-11 of RG_F16, 2^-4 of RG_F8_E4M3 and 2^-3 of RG_F8_E5M2, and the errors of many elements cancel. */
typedef struct rg_op_collective {
  rg_op op;
  uint32_t group;     /* from split() */
  uint32_t root;      /* REDUCE, BROADCAST, GATHER, SCATTER: the root's index among the members */
  uint32_t reduction; /* rg_reduction, of ALL_REDUCE, REDUCE and REDUCE_SCATTER; else 0 */
  uint32_t wire;      /* the wire type of RG_F32 (RG_F16, RG_BF16, RG_F8_*); 0: the type in memory */
  rg_buffer source, target;
  /* [members] Elements of each chunk, valid until the operation ends: of the buffer that has all chunks, in ALL_TO_ALL
   * of the source. Null: equal chunks in ALL_TO_ALL; else, with lines = (count + 15) / 16, chunk k begins at element
   * min(count, lines * k / n * 16), in integer arithmetic, so that no two chunks share a cache line. */
  const uint64_t* counts;
  const uint64_t* target_counts; /* ALL_TO_ALL, with counts: the elements from each member; else null */
} rg_op_collective;

/* ----------------------------------------------------------------------------------------------------- arithmetic */

/* target = value; with `index` (RG_I32; region 0: none): target[index[i]] = value */
typedef struct rg_op_fill {
  rg_op op;
  rg_buffer target, index;
  double value;
} rg_op_fill;

/* target = source, both of the same type, which may be any; they do not overlap */
typedef struct rg_op_copy {
  rg_op op;
  rg_buffer target, source;
} rg_op_copy;

/* target += factor * source; with `index` (RG_I32, as long as source; region 0: none): target[index[i]] += factor *
 * source[i] */
typedef struct rg_op_axpy {
  rg_op op;
  rg_buffer target, source, index;
  double factor;
} rg_op_axpy;

/* target *= factor */
typedef struct rg_op_scale {
  rg_op op;
  rg_buffer target;
  double factor;
} rg_op_scale;

/* target *= min(1, max_norm / Euclidean norm of target); unchanged if the norm is not finite */
typedef struct rg_op_clip {
  rg_op op;
  rg_buffer target;
  double max_norm;
} rg_op_clip;

/* velocity = factor * velocity + gradient, then sum += velocity: momentum, and its sum. Three buffers of one length. */
typedef struct rg_op_accumulate {
  rg_op op;
  rg_buffer velocity, gradient, sum;
  double factor;
} rg_op_accumulate;

/* target = source, converted between RG_F32, RG_F16 and RG_BF16, to nearest even. If both are RG_F32, the values are
 * rounded as `round_to` (RG_F16, RG_BF16) would round them: a rank that keeps a copy of values that it sends in that
 * wire type then has the same values as the receivers. */
typedef struct rg_op_convert {
  rg_op op;
  rg_buffer target, source;
  uint32_t round_to; /* only if target and source are RG_F32, else 0 */
} rg_op_convert;

/* These two compress gradients: they write the indices (RG_I32, unique, ascending) of some elements of `source`, at
 * most 2^31 - 1 elements, to `index`, and their values to `values`, which has the same count as `index`.
 *
 * TOP_K takes the values.count elements with the largest magnitude, of equal ones the first; NaN is the largest.
 * Requires at least as many elements in `source`. */
typedef struct rg_op_top_k {
  rg_op op;
  rg_buffer source, values, index;
} rg_op_top_k;

/* SELECT takes all elements with a magnitude above `threshold`; more than values.count of them end the run. submit()
 * never returns RG_DONE for it: rg_completion.bytes is the size of the values that were found. */
typedef struct rg_op_select {
  rg_op op;
  rg_buffer source, values, index;
  double threshold;
} rg_op_select;

/* Copies rows between buffers in host memory; `index` is RG_I64. A row has rows.count / index.count elements.
 * GATHER_ROWS: rows[i] = table[index[i]]; SCATTER_ROWS: table[index[i]] = rows[i], or with RG_OP_ADD += */
typedef struct rg_op_copy_rows {
  rg_op op;
  rg_buffer rows, table, index;
  uint32_t flags; /* SCATTER_ROWS: RG_OP_ADD */
} rg_op_copy_rows;

/* A matrix product c = alpha * op(a) * op(b) + beta * c, where op(a) is m x k, op(b) is k x n and c is m x n. Matrices
 * are row-major; a_row, b_row and c_row are the elements from one stored row to the next. With RG_GEMM_A the matrix a
 * is stored transposed, as k x m, with RG_GEMM_B b as n x k. If beta is 0, c is not read. Each element is a sum in fp32
 * and is rounded to c's type at the end; the order of the sum depends on this struct and on where it is computed (the
 * host, or which device) alone. Engines of 1.0 take RG_F32 or RG_BF16, of both a and b, and c of RG_F32. The size of
 * this struct never changes. */
enum { RG_GEMM_A = 1, RG_GEMM_B = 2 };
typedef struct rg_gemm {
  uint32_t a_type, b_type, c_type; /* rg_type of each matrix */
  uint32_t flags;                  /* RG_GEMM_* */
  uint64_t m, n, k;
  uint64_t a_row, b_row, c_row;
  double alpha, beta;
} rg_gemm;

/* The matrices begin with their buffers and lie within them; c overlaps neither a nor b. On the host it is computed as
 * RG_OP_RUN is, or within submit() if it takes a fraction of a millisecond and no function waits or runs. A device
 * without GEMM (rg_device.gemm) refuses it. */
typedef struct rg_op_gemm {
  rg_op op;
  rg_buffer a, b, c;
  rg_gemm gemm;
} rg_op_gemm;

#define RG_MAX_RUN_BUFFERS 8

/* Where a function of RG_OP_RUN computes. Valid during the call. */
typedef struct rg_run {
  uint32_t struct_size;
  uint32_t buffer_count;
  void* const* addresses; /* [buffer_count]: the first byte of each buffer */
  const char* device;     /* the kind of device that the buffers are on, as rg_executor.device; null: in host memory */
  void* stream; /* the device's stream, of the type that its kind defines (ext/device.h); null: in host memory */
} rg_run;

/* Calls function(context, run), which uses the buffers, of any type, and `context` only. An error that it returns ends
 * the run, with the text of rg_host.fail().
 *  - Buffers in host memory: the engine calls it on a thread of this rank, one function at a time in the order of
 *    submit(), while the loop goes on. Under a virtual clock it is called when the declared time is over: 0.1 ns for
 *    each byte or flop, whichever are more (in `regatta simulate` the default of [work] in the machine file).
 *  - Buffers on a device: the engine calls it within submit(), with the device current for the calling thread. The
 *    function enqueues its kernels in `stream`, behind all operations before, and waits for nothing.
 * In simulations with ghosts the function is not called. */
typedef struct rg_op_run {
  rg_op op;
  rg_status (*function)(void* context, const rg_run* run);
  void* context;            /* what it points to is valid until the operation has ended */
  const rg_buffer* buffers; /* [buffer_count]; valid until submit() returns */
  uint32_t buffer_count;    /* at most RG_MAX_RUN_BUFFERS */
  uint32_t memory;          /* bit mask of the RG_MEMORY_* in which the function can compute; others are refused */
  uint64_t bytes;           /* that the function reads and writes; bytes and flops are not both 0 */
  uint64_t flops;
} rg_op_run;

/* --------------------------------------------------------------------------------------------------- the optimizer */

/* Updates elements [first, first + gradient.count) of the arena, which this rank owns in `role`. `gradient` is their
 * gradient, where the arena is (host or device), in a synchronous strategy summed over all workers. If updates are
 * deferred (RG_HOST_DEFERRED), the operation only adds the gradient to the norm; the update follows in RG_OP_COMMIT,
 * until which `gradient` must not change. */
typedef struct rg_op_apply {
  rg_op op;
  uint32_t role; /* RG_ROLE_* */
  uint64_t step;
  uint64_t first;
  rg_buffer gradient;
} rg_op_apply;

/* target (2 x RG_F64) = {number of non-finite elements, sum of squares of the finite ones} of the gradients, of arena
 * and rows, that this rank applied in `role` since the last commit; zeros if updates are not deferred. `target` is
 * where the arena is. */
typedef struct rg_op_norm {
  rg_op op;
  uint32_t role;
  rg_buffer target;
} rg_op_norm;

/* Does this rank's deferred updates in `role`, scaled by the clip factor, or drops them if any gradient is not finite.
 * If updates are deferred, every owner must submit it once after the RG_OP_APPLYs of a step. */
typedef struct rg_op_commit {
  rg_op op;
  uint32_t role;
  uint64_t step;
  /* 2 x RG_F64, where the arena is: the sum of the results of RG_OP_NORM over owners that together hold each element
   * and row once. An owner of all of them passes its own result. */
  rg_buffer total;
} rg_op_commit;

/* ------------------------------------------------------------------------------------------ rows of sparse tables */

/* These four work on the rows of sparse table `table` (an index into rg_arena.tables) that this rank holds in `role`
 * (own_rows). `rows` (RG_I64) are n row numbers, each once, all held by this rank; values are RG_F32 [n, row]. A row is
 * initialised by the model's init when it is first needed. All buffers are in host memory. */

/* Flag of RG_OP_ROWS_READ: the operation reads all rows of a step into the table's window, and the strategy itself does
 * not read the window. If the model can read rows in place (RG_MODEL_ROWS_IN_PLACE), it then gets the addresses of the
 * rows, and nothing is copied. The rows must not change until the model has ended its step. */
enum { RG_ROWS_FOR_MODEL = 1 };

/* target = the rows' weights */
typedef struct rg_op_rows_read {
  rg_op op;
  uint32_t role, table;
  rg_buffer rows, target;
  uint32_t flags; /* RG_ROWS_FOR_MODEL */
} rg_op_rows_read;

/* Adds `gradients` to the rows' pending gradients, in the order of the calls. */
typedef struct rg_op_rows_add {
  rg_op op;
  uint32_t role, table;
  rg_buffer rows, gradients;
} rg_op_rows_add;

/* Updates every row that has a pending gradient, and clears the gradient. With `rows` (region 0: none) it first adds
 * `gradients`, as ROWS_ADD does. If updates are deferred, the gradients only take part in the norm, and no gradient may
 * be added until the commit. */
typedef struct rg_op_rows_apply {
  rg_op op;
  uint32_t role, table;
  uint64_t step;
  rg_buffer rows, gradients;
} rg_op_rows_apply;

/* Adds factor * values to the rows' weights, without the optimizer. */
typedef struct rg_op_rows_write {
  rg_op op;
  uint32_t role, table;
  rg_buffer rows, values;
  double factor;
} rg_op_rows_write;

/* ------------------------------------------------------------------------------------------------------------ time */

/* Completes `delay_ns` nanoseconds from now, by the virtual clock if there is one. */
typedef struct rg_op_timer {
  rg_op op;
  uint64_t delay_ns;
} rg_op_timer;

#ifdef __cplusplus
}
#endif
#endif

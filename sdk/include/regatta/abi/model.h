/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam of models: what the engine calls to compute a step, a model's network as a graph, and the executors that make
 * a model of one. The rules are those of abi.h.
 */
#ifndef REGATTA_ABI_MODEL_H
#define REGATTA_ABI_MODEL_H

#include <regatta/abi/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RG_TENSOR_DENSE = 1, /* a weight with a gradient of the same shape */
  RG_TENSOR_ROWS = 2,  /* a table of which a step touches a few rows; lies outside the arena */
  RG_TENSOR_STATE = 3  /* no gradient (running statistics); averaged over workers before evaluation */
};

enum {
  RG_INIT_CONSTANT = 1, /* a */
  RG_INIT_UNIFORM = 2,  /* from a to b */
  RG_INIT_NORMAL = 3    /* mean a, standard deviation b */
};

typedef struct rg_tensor {
  uint32_t struct_size;
  uint32_t kind;
  const char* name; /* "conv1_2.weight" */
  uint32_t ndim;
  uint32_t compressible; /* 0: strategies that compress leave it dense (batch norm's, biases) */
  int64_t shape[RG_MAX_DIMS];
  uint64_t storage; /* elements it takes in memory, with padding that stays zero; 0: the product of shape */
  float decay;      /* factor on weight decay: 0 exempts */
  float lr_scale;   /* factor on the learning rate */
  uint32_t init;    /* RG_INIT_*: how a graph's tensor starts; a model that is no graph does its own */
  uint32_t reserved;
  double init_a, init_b;
  uint64_t max_rows; /* RG_TENSOR_ROWS: rows that one batch of rg_model_setup.batch can touch at most */
} rg_tensor;

enum {
  RG_INPUT_VALUES = 1, /* numbers, as `content` asks */
  RG_INPUT_INDEX = 2   /* integers from 0 to range - 1: a class, a token */
};

typedef struct rg_input {
  uint32_t struct_size;
  uint32_t kind;
  const char* name; /* "image", "label" */
  uint32_t type;    /* RG_F32, RG_I32, RG_I64, RG_U8 */
  uint32_t ndim;
  int64_t shape[RG_MAX_DIMS]; /* of one sample; ndim 0: a scalar */
  int64_t range;              /* RG_INPUT_INDEX: number of classes, size of the vocabulary */
} rg_input;

enum { RG_PURPOSE_TRAIN = 1, RG_PURPOSE_INIT = 2 /* shapes, layout and init only: servers, describe */ };
enum { RG_KERNELS_FIXED = 1, RG_KERNELS_TIMED = 2 };

typedef struct rg_model_setup {
  uint32_t struct_size;
  uint32_t purpose;
  uint32_t precision; /* rg_type computed in; weights and gradients are RG_F32 in memory */
  uint32_t memory;    /* RG_MEMORY_*: where the model runs */
  int32_t device;     /* index, on devices */
  uint32_t threads;   /* compute threads it may use, its caller included */
  uint64_t batch;     /* samples of every step() and evaluate() */
  uint32_t kernels;   /* RG_KERNELS_FIXED: no choice may depend on a timing */
  uint32_t reserved;
  const char* picks; /* TIMED: what kernels() said in the process that timed; null: time now */
  uint32_t emulate;  /* not 0: a precision that the machine has no instructions for may be computed slowly */
  uint32_t plain;    /* not 0: a step's work is given to a device piece by piece, never captured and played again */
} rg_model_setup;

enum {
  RG_MODEL_ROWS_IN_PLACE = 1, /* reads rows of tables where rg_batch.rows_at says that they lie */
  RG_MODEL_MAKES_VALUES = 2   /* makes inputs of RG_INPUT_VALUES and RG_F32 itself where rg_batch.made says how */
};

typedef struct rg_model_info {
  uint32_t struct_size;
  uint32_t tensor_count;
  const rg_tensor* tensors; /* dense ones in the order in which their gradients become ready; valid until destroy */
  const rg_input* inputs;   /* likewise */
  uint32_t input_count;
  uint32_t metric_sums; /* doubles that evaluate() adds to */
  const char* metric;   /* what metric() returns: "top1", "auc", "perplexity"; null: none */
  const char* unit;     /* what a sample is: "images", "words" */
  const char* layout;   /* names the layout of weights in memory: equal on all ranks, or they refuse to start */
  uint64_t activation_bytes;
  double flops_per_sample; /* forward and backward, counted by the direct algorithm; 0: unknown */
  uint32_t count_kinds;    /* what count() counts: tokens, masked words; at most RG_MAX_COUNTS */
  uint32_t flags;          /* RG_MODEL_* */
  /* 1 + the input of indices whose values other than 0, which is padding, are the tokens of a sample, for throughput; 0:
   * there is none. */
  uint32_t tokens_input;
  uint32_t reserved;
} rg_model_info;

#define RG_MAX_COUNTS 8

/* Rows of a table: unique, ascending. */
typedef struct rg_rows {
  uint32_t struct_size;
  uint32_t tensor;
  const uint64_t* rows;
  uint64_t count;
} rg_rows;

/* What a step sees of a table: the rows that its batch touches, one after the other, ascending by their number. With
 * gradient accumulation they are those of all of the step's micro-batches. All of it is the host's memory. Where weights
 * are a device's, `weights` and `gradients` are memory of allocate_host() (device.h): the former stay as they are until
 * rg_step_result.late_fence of the last micro-batch has passed, and the latter are there from then on. */
typedef struct rg_table_rows {
  uint32_t struct_size;
  uint32_t tensor;
  const uint64_t* rows; /* their numbers */
  uint64_t count;
  const float* weights; /* [count, row] */
  float* gradients;     /* likewise, all of them overwritten (RG_BATCH_ACCUMULATE: added to); null in evaluation */
} rg_table_rows;

/* Where the engine keeps what the model reads and writes: one pointer a tensor, by its index. The arrays are valid during
 * bind only; what they point to, until destroy. Behind a tensor's `storage` elements lie zeros up to the next cache line,
 * which stay zeros. */
typedef struct rg_model_memory {
  uint32_t struct_size;
  uint32_t tensor_count;
  float* const* weights;   /* dense: weights; state: the state; rows: null */
  float* const* gradients; /* dense only, else null */
  /* RG_MEMORY_*: where all of them point to. On a device only where the executor has the extension "regatta.device/1"
   * (device.h), and then always; 0 is the host, too. What init() writes and canonical() takes is the host's in any
   * case, and so are the rows of sparse tables (rg_table_rows). */
  uint32_t memory;
  uint32_t reserved;
} rg_model_memory;

enum {
  RG_BATCH_ACCUMULATE = 1, /* add to the gradients instead of overwriting them */
  RG_BATCH_LAST = 2,       /* the step's last micro-batch: ready() is to be called */
  /* On devices: inputs are memory of allocate_host() (device.h), and stay as they are until rg_step_result.late_fence has
   * passed, so that the copy to the device need not be waited for. */
  RG_BATCH_HELD = 4,
  RG_BATCH_SAME = 8 /* inputs hold what they held in this instance's last step(): who kept a copy needs no other */
};

enum { RG_MADE_ZEROS = 1, RG_MADE_UNIFORM = 2, RG_MADE_LOOKED_UP = 3 };

/* How an input is made. Element e of sample k of the batch comes of rg::random_bits(seed, rg_batch.first_sample + k, block,
 * rg::stream_data) of regatta/random.hpp. UNIFORM: block e / 4, rg::to_uniform of number e % 4 of its four. LOOKED_UP:
 * block e / 8, table[b]: b are bits 16 (e % 2) up of number (e % 8) / 2. */
typedef struct rg_made {
  uint32_t struct_size;
  uint32_t kind; /* RG_MADE_*; 0: it is not made, but in memory */
  uint64_t seed;
  const float* table; /* LOOKED_UP: 65536 numbers, the same for all inputs and steps; valid until destroy */
} rg_made;

typedef struct rg_batch {
  uint32_t struct_size;
  uint32_t input_count;
  const void* const* inputs; /* [samples, shape...] each, in the order of rg_model_info.inputs, 64-byte aligned */
  uint64_t samples;          /* the batch of rg_model_setup */
  uint64_t valid;            /* evaluation: samples that count, the first ones; training: all */
  uint64_t step;             /* global step, from 0 */
  uint64_t first_sample;     /* index of sample 0 within the global batch of this step */
  uint64_t global_samples;   /* of this step, over all workers and micro-batches: what the loss is divided by */
  uint64_t seed;             /* random numbers depend on (seed, step, index of the sample, layer) alone */
  uint32_t flags;            /* RG_BATCH_* */
  uint32_t table_count;
  const rg_table_rows* tables; /* one a tensor of RG_TENSOR_ROWS, in the order of rg_model_info.tensors */
  const uint64_t*
      global_counts; /* [rg_model_info.count_kinds] of this step, as global_samples; null in rows(), count() */
  /* With RG_MODEL_ROWS_IN_PLACE, by table: where the weights of each row lie, [count], which are not in tables[].weights
   * then; null: they are there. Itself null from older engines. */
  const float* const* const* rows_at;
  /* In step(), with RG_MODEL_MAKES_VALUES: one an input; of those that are made, inputs[] is null. Null: all are in
   * memory. */
  const rg_made* made;
} rg_batch;

enum {
  RG_PHASE_BACKWARD = 1, /* the forward pass is over */
  RG_PHASE_FORWARD = 2   /* it begins, now that the first weights it reads are there; on devices that tell times */
};

/* What a step tells the engine while it runs. [compute] */
typedef struct rg_hooks {
  uint32_t struct_size;
  uint32_t reserved;
  void* context;
  /* Before weight `tensor` is first read in this step; may wait. Not RG_OK: return it from step() at once. */
  rg_status (*need)(void* context, uint32_t tensor);
  /* The gradients of all dense tensors up to and with `tensor` are final once `fence` has passed, and this step reads
   * their weights no more. Ascending, each tensor at most once, the last dense one before the step's last micro-batch
   * returns: else the run fails. */
  void (*ready)(void* context, uint32_t tensor, rg_fence fence);
  /* RG_PHASE_*, once `fence` has passed. */
  void (*phase)(void* context, uint32_t phase, rg_fence fence);
  /* In place of need where memory is a device's, for every dense tensor, in every step: besides, what reads the weight or
   * writes its gradient on the device has to come after `*after`, where that is not 0. Null: memory is the host's. */
  rg_status (*need_after)(void* context, uint32_t tensor, rg_fence* after);
  /* Ascending, the same in every step: the dense tensors whose ready() somebody waits for; of others it may be left out,
   * and weights between two of them be needed all at once. Null: every ready() is waited for. */
  const uint32_t* awaited;
  uint32_t awaited_count;
  uint32_t reserved2;
} rg_hooks;

typedef struct rg_step_result {
  uint32_t struct_size;
  uint32_t reserved;
  double loss_sum; /* over this batch's samples, not divided */
  uint64_t count;  /* what it is the sum of */
  /* On devices step() need not wait for the loss: the sum then is in `*late`, in the host's memory, once `late_fence` has
   * passed, and stays there until two more steps have begun. The engine asks one step later, or at the end. Null:
   * loss_sum is it. */
  const double* late;
  rg_fence late_fence;
} rg_step_result;

typedef struct rg_model {
  uint32_t struct_size;
  uint32_t reserved;
  /* [main] Null in models that are graphs: an executor makes their instances. */
  rg_status (*create)(const rg_host* host, const rg_value* values, const rg_model_setup* setup, void** self);
  void (*destroy)(void* self);                            /* [main] */
  rg_status (*describe)(void* self, rg_model_info* info); /* [main] */
  /* [main] Fills `out` with the tensor's start, in its layout in memory (`storage` elements), or, where `rows` is given,
   * with those rows, one after the other. Depends on (seed, tensor, row) alone, the same on every rank. Also [loop], of
   * an instance of its own (RG_PURPOSE_INIT): rows of sparse tables are made when they are first asked for. */
  rg_status (*init)(void* self, uint32_t tensor, const uint64_t* rows, uint64_t row_count, uint64_t seed, float* out);
  /* [main] Once, before the first step. */
  rg_status (*bind)(void* self, const rg_model_memory* memory);
  /* [compute] Forward and backward. Gradients are those of sum(loss) / global_samples. Allocates no more after
   * the second call with or without RG_BATCH_ACCUMULATE: the first may make room, the second capture for a device. */
  rg_status (*step)(void* self, const rg_batch* batch, const rg_hooks* hooks, rg_step_result* result);
  /* [compute] Adds to rg_model_info.metric_sums doubles; the engine adds them up over ranks. */
  rg_status (*evaluate)(void* self, const rg_batch* batch, double* sums);
  rg_status (*metric)(void* self, const double* sums, double* value); /* [main] */
  /* [main] Between memory's layout and the canonical one (row-major, by shape). Null: they are the same. */
  rg_status (*canonical)(void* self, uint32_t tensor, const float* memory, float* out);
  rg_status (*from_canonical)(void* self, uint32_t tensor, const float* canonical, float* memory);
  /* [main] One line a kernel, "name: what runs", ended by newlines; valid until destroy. Given back as `picks`, it makes
   * another instance of the same set-up choose the same. Null: there is no choice. */
  const char* (*kernels)(void* self);
  /* [compute] The rows that this batch will touch (negative samples already drawn, by seed, step and sample): one entry
   * in `out` for every tensor of RG_TENSOR_ROWS, in their order. What they point to is valid until the next rows().
   * Required where there are such tensors. */
  rg_status (*rows)(void* self, const rg_batch* batch, rg_rows* out);
  /* [compute] Adds to rg_model_info.count_kinds numbers what of this batch counts: its tokens, its masked words. */
  rg_status (*count)(void* self, const rg_batch* batch, uint64_t* counts);
} rg_model;

/* A model's network as a list of nodes: extension "regatta.graph/1" of a model. The ops, their attributes and the
 * order of their weights are listed in regatta/layers.hpp, which is also how one is written. */
#define RG_EXT_GRAPH "regatta.graph/1"

typedef struct rg_attr {
  const char* name;
  double number; /* integers are exact up to 2^53 */
} rg_attr;

typedef struct rg_node {
  uint32_t struct_size;
  uint32_t ndim;
  const char* op;          /* "conv2d" */
  const char* name;        /* "conv1_2" */
  const uint32_t* inputs;  /* indices of earlier nodes */
  const uint32_t* weights; /* indices into rg_graph.tensors, as the op orders them */
  const rg_attr* attrs;
  uint32_t input_count, weight_count, attr_count;
  uint32_t reserved;
  int64_t shape[RG_MAX_DIMS]; /* of one sample's output, canonical: channels, height, width */
} rg_node;

typedef struct rg_graph {
  uint32_t struct_size;
  uint32_t node_count;
  const rg_node* nodes;     /* in an order in which they can run; the last one is the loss */
  const rg_tensor* tensors; /* in the order of their first use */
  const rg_input* inputs;   /* node k < input_count stands for inputs[k] */
  uint32_t tensor_count, input_count;
  const char* unit;
  uint32_t tokens_input; /* rg_model_info.tokens_input */
  uint32_t reserved;
} rg_graph;

typedef struct rg_graph_source {
  uint32_t struct_size;
  uint32_t reserved;
  rg_status (*create)(const rg_host* host, const rg_value* values, void** self); /* [main] */
  void (*destroy)(void* self);                                                   /* [main] */
  const rg_graph* (*graph)(void* self);                                          /* [main] valid until destroy */
} rg_graph_source;

/* --------------------------------------------------------------------------------------------------- executor --- */

typedef struct rg_executor {
  uint32_t struct_size;
  uint32_t memory; /* bit mask of RG_MEMORY_*: where it can run models */
  /* [main] Makes a model of a graph, which stays valid until the model's destroy. RG_E_UNSUPPORTED: no such device,
   * precision or op; the text says which, of an op with the words "no op NAME". RG_E_CONFIG: the graph is wrong. */
  rg_status (*compile)(const rg_host* host, const rg_value* values, const rg_graph* graph, const rg_model_setup* setup,
                       void** model);
  const rg_model* model; /* the functions of what compile makes; its create is null */
} rg_executor;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of models and executors: the functions by which the engine computes a step, a model's network as a
 * graph, and the executors that compile a graph into a model. The rules of abi.h hold.
 */
#ifndef REGATTA_ABI_MODEL_H
#define REGATTA_ABI_MODEL_H

#include <regatta/abi/base.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RG_TENSOR_DENSE = 1, /* a weight with a gradient of the same shape */
  RG_TENSOR_ROWS = 2,  /* a sparse table: a step touches few of its rows; lies outside the arena */
  RG_TENSOR_STATE = 3  /* values without a gradient (running statistics); averaged over workers before evaluation */
};

enum {
  RG_INIT_CONSTANT = 1, /* init_a */
  RG_INIT_UNIFORM = 2,  /* from init_a to init_b */
  RG_INIT_NORMAL = 3    /* mean init_a, standard deviation init_b */
};

typedef struct rg_tensor {
  uint32_t struct_size;
  uint32_t kind;
  const char* name; /* "conv1_2.weight"; unique in the model */
  uint32_t type;    /* of the values in memory: RG_F32, the only type that engines of 1.0 take */
  uint32_t ndim;
  uint32_t compressible; /* 0: strategies that compress gradients do not compress this one (biases, batch norm) */
  uint32_t init;         /* RG_INIT_*, for tensors of a graph; a model without a graph initialises in init() */
  const int64_t* shape;  /* [ndim], of a sparse table its rows first; valid as long as the tensor's other members */
  uint64_t storage;      /* elements in memory, including padding that stays zero; 0: the product of shape */
  float decay;           /* factor on the optimizer's weight decay, usually 1; 0: no decay */
  float lr_scale;        /* factor on the learning rate, usually 1 */
  double init_a, init_b;
  /* RG_TENSOR_ROWS: the largest number of rows that one batch of rg_model_setup.batch samples can touch, from 1 to the
   * rows of the table. 0 in a graph, whose executor sets it. */
  uint64_t max_rows;
  /* 0: element e of the shape, counted row-major, is element e in memory, and padding is behind the last one. Not 0:
   * the elements are in an order of the model's own, with padding anywhere; canonical() and from_canonical()
   * convert. */
  uint32_t reordered;
  /* The type of the gradient in memory; 0: `type`. The arena of gradients has one element for each element of the arena
   * of weights, at the same index, also where the two types differ in size. Engines of 1.0 take 0 and RG_F32 only. */
  uint32_t gradient_type;
} rg_tensor;

enum {
  RG_INPUT_VALUES = 1, /* numbers; the user's key data.content chooses how they are generated */
  RG_INPUT_INDEX = 2   /* integers from 0 to range - 1: a class, a token */
};

typedef struct rg_input {
  uint32_t struct_size;
  uint32_t kind;
  const char* name; /* "image", "label" */
  uint32_t type;    /* RG_I32, RG_I64 or RG_U8; of RG_INPUT_VALUES also RG_F32 */
  uint32_t ndim;
  const int64_t* shape; /* [ndim], of one sample; ndim 0: a scalar */
  int64_t range;        /* RG_INPUT_INDEX: number of classes, size of the vocabulary; from 1 to what `type` holds */
} rg_input;

/* TRAIN: the instance computes. INIT: only describe() and init() are needed, e.g. on servers and for `regatta
 * describe`. */
enum { RG_PURPOSE_TRAIN = 1, RG_PURPOSE_INIT = 2 };
/* FIXED: the choice of kernels must not depend on timings. TIMED: the model may autotune. */
enum { RG_KERNELS_FIXED = 1, RG_KERNELS_TIMED = 2 };
/* SYNC: the model waits for the device after every op and checks its status and results; the first op that is wrong
 * fails the call with a text that names op, layer, pass and tensor. No graph capture. */
enum { RG_DEBUG_NONE = 0, RG_DEBUG_SYNC = 1 };

typedef struct rg_model_setup {
  uint32_t struct_size;
  uint32_t purpose; /* RG_PURPOSE_* */
  /* The rg_type that the model computes in, or RG_TF32 (ext/device.h). Weights and gradients in memory are RG_F32. */
  uint32_t precision;
  uint32_t memory;  /* RG_MEMORY_*: where the model runs */
  int32_t device;   /* index of the device, if `memory` is a device's */
  uint32_t threads; /* compute threads that the model may use, including the thread that calls it */
  uint64_t batch;   /* samples in each call of step() and evaluate() */
  uint32_t kernels; /* RG_KERNELS_* */
  uint32_t debug;   /* RG_DEBUG_*; a model that runs in host memory may ignore it */
  /* RG_KERNELS_TIMED: the text that kernels() returned in the process that autotuned; the model then chooses the same
   * kernels. Empty: kernels() returned null there. Null: autotune now. */
  const char* kernel_choices;
  uint32_t emulate; /* not 0: the model may emulate, slowly, a precision for which the machine has no instructions */
  uint32_t plain;   /* not 0: no graph capture and replay; the model launches each kernel of a step on its own */
  /* Not 0: the strategy has asked for row-major tensors (RG_PLAN_ROW_MAJOR). A run is refused if a dense tensor is
   * rg_tensor.reordered all the same. */
  uint32_t row_major;
} rg_model_setup;

enum {
  RG_MODEL_ROWS_IN_PLACE = 1, /* can read rows of sparse tables at the addresses in rg_batch.rows_at */
  RG_MODEL_RELEASES = 2       /* reads weights between need() and done() only, if the hooks have done() */
};

typedef struct rg_model_info {
  uint32_t struct_size;
  uint32_t tensor_count;
  /* The dense tensors among them are in the order in which their gradients become ready. Valid until destroy. */
  const rg_tensor* tensors;
  const rg_input* inputs; /* valid until destroy */
  uint32_t input_count;
  uint32_t metric_sums; /* number of doubles that evaluate() adds to; 0: no metric is computed */
  const char* metric;   /* name of the value that metric() returns: "top1", "auc", "perplexity"; null: no metric */
  const char* unit;     /* plural name of a sample: "images", "words"; not null */
  /* Name of the layout of weights in memory, not null or empty. Ranks with different names refuse to start. */
  const char* layout;
  uint64_t activation_bytes; /* memory of the activations of one batch; 0: unknown */
  double flops_per_sample; /* of forward and backward pass, by the direct algorithm (no Winograd, no FFT); 0: unknown */
  uint32_t count_kinds;    /* number of counts of count(), e.g. tokens, masked words; at most RG_MAX_COUNTS */
  uint32_t flags;          /* RG_MODEL_* */
  /* 1 + the index of the input (RG_INPUT_INDEX, RG_I32 or RG_I64) whose values are the tokens of a sample, by which
   * throughput is counted; the value 0 there is padding and is not counted. 0: there is no such input. */
  uint32_t tokens_input;
} rg_model_info;

#define RG_MAX_COUNTS 8

/* The rows of a sparse table that a batch touches: `count` row numbers, each once, ascending. */
typedef struct rg_rows {
  uint32_t struct_size;
  uint32_t tensor; /* index into rg_model_info.tensors */
  const uint64_t* rows;
  uint64_t count;
} rg_rows;

/* The part of a sparse table that a step works with: the rows that its batch touches, in ascending order. With gradient
 * accumulation, these are the rows of all micro-batches of the step. All pointers are to host memory. If the model
 * computes on a device, `weights` and `gradients` are memory from allocate_host() (ext/device.h): the engine does not
 * change `weights` before the fence of rg_device_hooks.late_loss of the last micro-batch has passed, and reads
 * `gradients` only afterwards. */
typedef struct rg_table_rows {
  uint32_t struct_size;
  uint32_t tensor;      /* index into rg_model_info.tensors */
  const uint64_t* rows; /* [count]: row numbers */
  uint64_t count;
  const void* weights; /* [count, row] of rg_tensor.type */
  /* [count, row] of rg_tensor.gradient_type. The model overwrites all of them, also those of rows that only another
   * micro-batch touches (with zeros), or adds to them with RG_BATCH_ACCUMULATE. Null in evaluation. */
  void* gradients;
} rg_table_rows;

/* Addresses of a model's tensors: one pointer for each tensor, by its index. The two arrays are valid during bind()
 * only; the memory that they point to is valid until destroy, and holds the values of init(). Behind the `storage`
 * elements of a dense tensor there are zeros up to the next cache line; the model must leave them zero. */
typedef struct rg_model_memory {
  uint32_t struct_size;
  uint32_t tensor_count;
  void* const* weights;   /* of a dense tensor its weights, of a state its values; null for a sparse table */
  void* const* gradients; /* of a dense tensor its gradient; else null */
  /* RG_MEMORY_*: the memory of all these pointers; 0 means the host, too. It is a device's if and only if the executor
   * has the extension "regatta.device/1" (ext/device.h). The arguments of init() and canonical() and the rows of sparse
   * tables (rg_table_rows) are always in host memory. */
  uint32_t memory;
} rg_model_memory;

enum {
  RG_BATCH_ACCUMULATE = 1, /* add to the gradients instead of overwriting them */
  RG_BATCH_LAST = 2 /* the step's last micro-batch: the model has to call rg_hooks.ready; in others it must not */
};                  /* 4 is RG_BATCH_HELD (ext/device.h) */

typedef struct rg_batch {
  uint32_t struct_size;
  uint32_t input_count;
  /* One pointer for each of rg_model_info.inputs: its values [samples, shape...] in host memory, 64-byte aligned. */
  const void* const* inputs;
  uint64_t samples; /* rg_model_setup.batch */
  uint64_t valid;   /* evaluation: only the first `valid` samples count; training: equal to `samples` */
  uint64_t step;    /* number of the step, from 0 */
  /* Index of this batch's sample 0 within the global batch; in evaluation, within the data. */
  uint64_t first_sample;
  uint64_t global_samples; /* samples of the step, over all workers and micro-batches: the divisor of the loss */
  /* Of the run. Random numbers must depend on nothing but (seed, step, first_sample + index in the batch, layer). */
  uint64_t seed;
  uint32_t flags; /* RG_BATCH_* */
  uint32_t table_count;
  const rg_table_rows* tables; /* one for each sparse table, in the order of rg_model_info.tensors */
  /* [rg_model_info.count_kinds]: the counts of count(), summed over all workers and micro-batches of the step; with a
   * strategy that is not synchronous, from step 1 on this worker's counts times the number of workers. Only in step(),
   * and null if count_kinds is 0. */
  const uint64_t* global_counts;
  /* Only with RG_MODEL_ROWS_IN_PLACE: for each table either an array of `count` addresses, one for the weights of each
   * row, which are then not in tables[].weights; or null, if they are there. The pointer itself may be null: all are
   * there. */
  const void* const* const* rows_at;
} rg_batch;

typedef struct rg_device_hooks rg_device_hooks; /* ext/device.h */

/* The functions that a model calls within step(), to synchronise with the exchange. [compute] Valid during step(). A
 * null function needs no call. */
typedef struct rg_hooks {
  uint32_t struct_size;
  void* context;
  /* To be called before dense weight `tensor` is first read in this step, and again after done(). May wait until the
   * weight has arrived. If it does not return RG_OK, step() must return that status at once. */
  rg_status (*need)(void* context, uint32_t tensor);
  /* Reports that the gradients of all dense tensors up to and including `tensor` are final, and that this step reads
   * their weights no more. To be called with ascending tensors, each at most once. The run fails unless the last dense
   * tensor is reported before the step's last micro-batch returns. */
  void (*ready)(void* context, uint32_t tensor);
  /* Reports that the forward pass has ended: once in each step(), before the first ready(). May wait until all weights
   * have arrived. If a step() never calls it, the result shows all of its time as backward pass. */
  void (*backward)(void* context);
  /* Only for models with RG_MODEL_RELEASES; null: weights stay in memory during the step. To be called once for each
   * need() of a dense weight, after the last use in that pass: until the next need() of the weight its memory may hold
   * anything. Where the backward pass reads the weight, too, it calls need() and done() again. Each pass calls need()
   * and done() at most once for a weight, and done() does not wait. */
  void (*done)(void* context, uint32_t tensor);
  /* Of a model on a device, which calls these functions in place of need, ready, backward and done. Null: the model's
   * memory is the host's. */
  const rg_device_hooks* device;
} rg_hooks;

typedef struct rg_step_result {
  uint32_t struct_size;
  double loss_sum; /* sum of the loss over this batch's samples or tokens, not divided */
  uint64_t count;  /* number of terms in that sum; 0: the batch has no loss. The result has the mean over all workers */
} rg_step_result;

typedef struct rg_model {
  uint32_t struct_size;
  /* [main] [required; null in a model that is a graph and in rg_executor.model, where an executor creates the
   * instances] Creates an instance. */
  rg_status (*create)(const rg_host* host, const rg_value* values, const rg_model_setup* setup, void** self);
  /* [main] [required] Ends the instance. */
  void (*destroy)(void* self);
  /* [main] [required] Writes the model's tensors, inputs and names to `*info`. Its answer does not change. */
  rg_status (*describe)(void* self, rg_model_info* info);
  /* [main] [required] Writes the initial values of a tensor to `out`, in the tensor's layout in memory (`storage`
   * elements); with `rows`, only those rows, one after the other. The values depend on (seed, tensor, row) alone and
   * are the same on every rank. Also [loop] on an instance for RG_PURPOSE_INIT that only the loop uses: rows of sparse
   * tables are initialised when they are first needed. */
  rg_status (*init)(void* self, uint32_t tensor, const uint64_t* rows, uint64_t row_count, uint64_t seed, void* out);
  /* [main] [required] Sets the addresses of the tensors. Called once, before the first step; never with
   * RG_PURPOSE_INIT. */
  rg_status (*bind)(void* self, const rg_model_memory* memory);
  /* [compute] [required] Runs the forward and the backward pass of one batch. The gradients are those of sum(loss) /
   * global_samples, or, of a loss over counted terms such as tokens, sum(loss) / their global count. Must not allocate
   * memory after its second call, counted separately with and without RG_BATCH_ACCUMULATE: the first call may allocate
   * buffers, the second may allocate for graph capture. */
  rg_status (*step)(void* self, const rg_batch* batch, const rg_hooks* hooks, rg_step_result* result);
  /* [compute] [optional: the model cannot evaluate] Runs the forward pass of one batch between steps and adds to the
   * rg_model_info.metric_sums doubles of `sums`. The engine then sums them over workers. All weights have arrived. */
  rg_status (*evaluate)(void* self, const rg_batch* batch, double* sums);
  /* [compute] [optional: there is no metric; requires evaluate] Computes the metric from the sums of all workers. */
  rg_status (*metric)(void* self, const double* sums, double* value);
  /* [main] [optional: both null: the two layouts are equal] Convert a tensor, in host memory, between its layout in
   * memory (`storage` elements) and the canonical layout (row-major by shape, without padding). */
  rg_status (*canonical)(void* self, uint32_t tensor, const void* memory, void* out);
  /* [main] [optional: as canonical] */
  rg_status (*from_canonical)(void* self, uint32_t tensor, const void* canonical, void* memory);
  /* [main] [optional: there is no choice] Returns the chosen kernels, one per line as "name: kernel", each line ended
   * by a newline; valid until destroy. If the text is passed as rg_model_setup.kernel_choices to another instance with
   * the same set-up, that instance chooses the same kernels. */
  const char* (*kernels)(void* self);
  /* [compute] [optional: the model has no sparse tables, or a run refuses it] Writes to `out` the rows that this batch
   * will touch, one entry for each sparse table, in the order of rg_model_info.tensors. Rows of negative samples are
   * included: they are drawn from seed, step and sample. The arrays are valid until the next call of rows(). */
  rg_status (*rows)(void* self, const rg_batch* batch, rg_rows* out);
  /* [compute] [optional: count_kinds is 0, or a run refuses the model] Adds this batch's counts, e.g. of tokens or
   * masked words, to the rg_model_info.count_kinds numbers of `counts`. Called before the batch's step(). */
  rg_status (*count)(void* self, const rg_batch* batch, uint64_t* counts);
} rg_model;

typedef struct rg_graph rg_graph; /* a network as a list of nodes (ext/graph.h) */

/* --------------------------------------------------------------------------------------------------- executor --- */

typedef struct rg_executor {
  uint32_t struct_size;
  uint32_t memory; /* bit mask of the RG_MEMORY_* in which it can run models */
  /* [main] [required] Compiles a graph into an instance of a model, of which `model` has the functions. The graph stays
   * valid until the instance's destroy; `values` are the executor's own parameters, which an experiment cannot set.
   * Fails with RG_E_UNSUPPORTED if the executor lacks the device, the precision or an op; the text says which, for an
   * op in the words "no op NAME". Fails with RG_E_CONFIG if the graph is wrong. */
  rg_status (*compile)(const rg_host* host, const rg_value* values, const rg_graph* graph, const rg_model_setup* setup,
                       void** model);
  const rg_model* model; /* the functions of the instances that compile() returns; its `create` is null */
  /* With RG_MEMORY_DEVICE: the kind of device, which the user chooses by train.device; a name as rg_component.id is,
   * but not "cpu". Else null. */
  const char* device;
} rg_executor;

#ifdef __cplusplus
}
#endif
#endif

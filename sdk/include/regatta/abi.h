/* SPDX-License-Identifier: Apache-2.0
 *
 * Regatta's plugin interface: everything that crosses between the engine and a shared object. C99, no dependency.
 *
 * A plugin exports one symbol, `regatta_plugin`. It returns a static description: the components it holds, each with a
 * kind, an id, a table of parameters and a table of functions. docs/writing-a-plugin.md walks through one of each kind.
 *
 * RULES, said once and true everywhere below:
 *
 *  - Versions. Every struct that may grow starts with `struct_size`, set to sizeof by whoever fills it. Readers copy
 *    min(theirs, ours) into a zeroed struct. A minor version only appends; a break is a new major, or a new extension id.
 *    In an array of such structs all elements have the same struct_size, and it is the stride.
 *  - Slots. A null or missing function means "not supported". What is optional beyond slots is an extension, asked for
 *    by id, e.g. "regatta.collectives/1".
 *  - Errors. Functions return an rg_status. On an error the plugin first hands a text to host->fail(). Nothing is thrown
 *    across this line, in either direction.
 *  - Ownership. Whoever passes a pointer owns what it points to. It is valid until the call returns, unless the comment
 *    says longer. Strings are UTF-8, ended by 0.
 *  - Threads. Each function names the context it is called in:
 *      [main]     set-up and tear-down; one call at a time, nothing else of that instance runs
 *      [compute]  the rank's compute thread
 *      [loop]     the rank's event loop: serialised, but not always the same thread
 *      [any]      any thread, at any time
 *  - Instances share no mutable statics. A thousand may live in one process, each with its own host.
 *  - Units: times are nanoseconds, sizes bytes, counts elements, unless a name says otherwise.
 */
#ifndef REGATTA_ABI_H
#define REGATTA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_ABI_MAJOR 1
#define RG_ABI_MINOR 0
#define RG_ENTRY_SYMBOL "regatta_plugin"
#define RG_MAX_DIMS 6

#if defined(_WIN32)
#define RG_EXPORT __declspec(dllexport)
#else
#define RG_EXPORT __attribute__((visibility("default")))
#endif

/* ---------------------------------------------------------------------------------------------------- status --- */

typedef int32_t rg_status;

enum {
  RG_OK = 0,
  RG_DONE = 1,           /* submit only: finished at once, no completion follows */
  RG_AGAIN = 2,          /* transports only: no room now, the engine queues the operation and retries */
  RG_TIMEOUT = 3,        /* a deadline passed, nothing is broken */
  RG_E_CONFIG = -1,      /* this experiment cannot run as configured: fix the file */
  RG_E_OPERATION = -2,   /* this operation failed; the instance can go on */
  RG_E_PEER = -3,        /* a peer is gone or broke the protocol; others can go on */
  RG_E_DEVICE = -4,      /* the device or its memory is unusable; this rank cannot go on */
  RG_E_PLUGIN = -5,      /* a bug of the plugin: no assumption holds any more */
  RG_E_UNSUPPORTED = -6, /* not built, or not available on this machine (case skipped, exit code 77) */
  RG_E_CANCELLED = -7    /* ended by cancel(), close() or the engine's abort */
};

enum { RG_LOG_ERROR = 0, RG_LOG_WARNING = 1, RG_LOG_INFO = 2, RG_LOG_DEBUG = 3 };

/* What the engine offers every instance. Valid from the call that hands it over until destroy() returns. */
typedef struct rg_host {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  void* context;
  /* [any] `text` is one line without a newline. */
  void (*log)(void* context, int32_t level, const char* text);
  /* [any] Records why the current call fails, and returns `status`. */
  rg_status (*fail)(void* context, rg_status status, const char* text);
  /* [any] A table of functions by id ("regatta.authenticate/1"), or null. */
  const void* (*extension)(void* context, const char* id);
} rg_host;

/* ------------------------------------------------------------------------------------------------- parameters --- */

enum {
  RG_PARAM_BOOL = 1,
  RG_PARAM_INT = 2,
  RG_PARAM_FLOAT = 3,
  RG_PARAM_STRING = 4,
  RG_PARAM_INTS = 5,  /* array of integers */
  RG_PARAM_FLOATS = 6 /* array of floats */
};

enum {
  RG_UNIT_NONE = 0,
  RG_UNIT_BYTES = 1,          /* an RG_PARAM_INT in bytes; "64KiB" is accepted */
  RG_UNIT_NANOSECONDS = 2,    /* an RG_PARAM_INT in ns; "50us" is accepted */
  RG_UNIT_BITS_PER_SECOND = 3 /* an RG_PARAM_FLOAT in bit/s; "10Gbit/s" is accepted */
};

/* One parameter, as a user may write it under [model], [transport] or [strategy]. `name` may be neither "plugin" nor
 * the id of a component of its kind. min and max bound numbers (each element of an array); both NaN or both 0: unbounded. */
typedef struct rg_param {
  uint32_t struct_size;
  uint32_t type;
  uint32_t unit;
  uint32_t reserved;
  const char* name;
  const char* help;          /* one line */
  const char* default_value; /* as TOML would write it: 5, 0.5, true, "text", [1, 2]; null: must be given */
  double min, max;
  const char* const* choices; /* strings only: what is allowed, ended by null; null: anything */
} rg_param;

/* A parameter's value; values are handed over as an array in the order of the table. Which member counts is said by
 * the type: i (bool 0/1, int), f (float), s (string), ints or floats with count. Its size is fixed for good. */
typedef struct rg_value {
  int64_t i;
  double f;
  const char* s;
  const int64_t* ints;
  const double* floats;
  uint64_t count;
} rg_value;

/* ------------------------------------------------------------------------------------------------- components --- */

enum { RG_KIND_MODEL = 1, RG_KIND_EXECUTOR = 2, RG_KIND_TRANSPORT = 3, RG_KIND_STRATEGY = 4 };

typedef struct rg_component {
  uint32_t struct_size;
  uint32_t kind;
  const char* id;      /* [a-z][a-z0-9_]* */
  const char* summary; /* one line */
  const rg_param* params;
  uint32_t param_count;
  uint32_t reserved;
  const void* functions; /* rg_model, rg_executor, rg_transport or rg_strategy, by kind */
  /* [any] A table of functions of this component by id, or null. The slot itself may be null. */
  const void* (*extension)(const char* id);
} rg_component;

typedef struct rg_plugin {
  uint32_t struct_size;
  uint16_t abi_major; /* RG_ABI_MAJOR the plugin was built with */
  uint16_t abi_minor;
  const char* name;
  const char* version;
  const rg_component* const* components;
  uint32_t component_count;
  uint32_t reserved;
} rg_plugin;

/* [main] The one exported symbol. `host` lives as long as the process. What it returns is never freed. */
typedef const rg_plugin* (*rg_entry)(const rg_host* host);

/* ----------------------------------------------------------------------------------------------------- memory --- */

typedef enum rg_type { RG_F32 = 1, RG_F16 = 2, RG_BF16 = 3, RG_F64 = 4, RG_I32 = 5, RG_I64 = 6, RG_U8 = 7 } rg_type;

enum { RG_MEMORY_HOST = 1, RG_MEMORY_CUDA = 2 }; /* bit mask where several are meant */

/* A region is memory that takes part in exchanges: made by the engine, registered with the transport, never moved. */
typedef uint32_t rg_region; /* 0: memory in no region: the engine's scratch */

/* Part of a region. Its size is fixed for good. */
typedef struct rg_buffer {
  rg_region region;
  uint32_t type;   /* rg_type */
  uint64_t offset; /* bytes from the region's start */
  uint64_t count;  /* elements */
} rg_buffer;

/* A point in a device's stream, opaque, 0: none. What carries one is ordered on the device; the host never waits. On
 * RG_MEMORY_CUDA it is the handle of a cudaEvent_t that was recorded. It belongs to who made it, and is valid until that
 * one has made 256 more in the same stream: from then on it may stand for a later point there, never for an earlier one. */
typedef uint64_t rg_fence;

/* Something submitted has ended. Its size is fixed for good. */
typedef struct rg_completion {
  uint64_t cookie;
  rg_status status;
  uint32_t reserved;
  uint64_t bytes; /* receives: bytes of payload that came, in memory's type */
  rg_fence fence; /* device operations: the bytes are there once this has passed */
} rg_completion;

/* ------------------------------------------------------------------------------------------------------ model --- */

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
 * bind only; what they point to, until destroy. */
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
   * their weights no more. */
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
   * precision or op; the text says which. */
  rg_status (*compile)(const rg_host* host, const rg_value* values, const rg_graph* graph, const rg_model_setup* setup,
                       void** model);
  const rg_model* model; /* the functions of what compile makes; its create is null */
} rg_executor;

/* -------------------------------------------------------------------------------------------------- transport --- */

enum {
  RG_CAP_ADD = 1,         /* a receive of RG_F32 may add instead of copy */
  RG_CAP_EXACT_SIZE = 2,  /* a message must be as long as its receive: no strategies with RG_PLAN_SHORT run over it */
  RG_CAP_SLEEP = 4,       /* poll() can sleep until something happens */
  RG_CAP_VIRTUAL = 8,     /* keeps a virtual clock and moves ghosts: buffers without bytes */
  RG_CAP_CANCEL_ALL = 16, /* cancel(peer) ends the operations with all peers */
  RG_CAP_NONE = 32,       /* connects nobody: only strategies without pairs run over it */
  RG_CAP_CONVERT = 64     /* converts between memory and wire (rg_transfer.wire); else the engine does */
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
 *    never depend on either. A message may be shorter than its receive; one that is longer ends both with an error.
 *  - Completion of a send: the buffer may be changed, and the bytes still arrive as they were.
 *  - Receives into overlapping bytes, adding or not, take effect in the order in which they were posted.
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

/* --------------------------------------------------------------------------------------------------- strategy --- */

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
  uint32_t reserved;
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
  RG_PLAN_SHORT = 64
};

typedef struct rg_plan {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t lanes;
  uint32_t reserved;
  uint64_t period;      /* steps after which its behaviour repeats: a measurement covers whole periods; 0: 1 */
  uint64_t steady_from; /* first step that is representative */
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Extensions of executors that compute on devices with their own memory. An executor that runs on the host alone needs
 * none of this. The rules of abi.h hold.
 *
 * The kind of a device is a name that executors and transports agree on. It defines what addresses, streams and
 * fences are:
 *   "cuda"   device pointers of CUDA; a cudaStream_t; the handle of a cudaEvent_t that was recorded
 *   "hip"    defined by the vendor's executor
 *   "sycl"   defined by the vendor's executor
 * Any other name is a kind of its vendor's, too. The engine knows no kind: it passes addresses and fences between
 * plugins of the same kind.
 */
#ifndef REGATTA_EXT_DEVICE_H
#define REGATTA_EXT_DEVICE_H

#include <regatta/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Extension of an executor's component (rg_component.extension): lists the devices of this machine. */
#define RG_EXT_DEVICES "regatta.devices/1"

/* A value of rg_model_setup.precision on devices, beside RG_F32, RG_F16 and RG_BF16: like RG_F32, but GEMMs and
 * convolutions may round their operands to TF32 (8 bits of exponent, 10 of mantissa). */
enum { RG_TF32 = 64 };

typedef struct rg_devices {
  uint32_t struct_size;
  const char* kind; /* of these devices, as rg_executor.device */
  /* [main] [required] Writes the number of devices, at least one. Fails with RG_E_UNSUPPORTED if there is no device or
   * no driver; the text says which. */
  rg_status (*count)(const rg_host* host, uint32_t* count);
  /* [main] [required] Writes a description of device `index`, one line ended by 0, cut to `room` bytes including the 0:
   * "NVIDIA H200, 139.8 GiB, compute capability 9.0". */
  rg_status (*describe)(const rg_host* host, uint32_t index, char* text, uint64_t room);
  /* [main] [required] Writes how device `a` reaches device `b`, one line as in describe(), in the words of `nvidia-smi
   * topo -m`: "NV18", "PIX", "PXB", "PHB", "NODE", "SYS". If a == b, writes which CPUs are near the device: "CPUs 0-31,
   * NUMA node 0". "": unknown. */
  rg_status (*topology)(const rg_host* host, uint32_t a, uint32_t b, char* text, uint64_t room);
} rg_devices;

/* A flag of rg_batch: the inputs are memory from allocate_host(), and do not change until the fence of late_loss() has
 * passed. step() therefore need not wait for their copy to the device. */
enum { RG_BATCH_HELD = 4 };

enum {
  RG_PHASE_FORWARD = 1, /* the forward pass begins: its first weights have arrived; only for devices with elapsed() */
  RG_PHASE_BACKWARD = 2 /* the forward pass has ended: once in each step(), before the first ready() */
};

/* Functions that a model on a device calls within step() (rg_hooks.device). Its work runs later than its calls, and
 * fences order the two. [compute] No function but done is null. Valid during step(). */
struct rg_device_hooks {
  uint32_t struct_size;
  void* context;
  /* To be called in each pass for every dense tensor, as rg_hooks.need; without done(), once a step is enough. Work
   * that reads the weight or writes its gradient must be ordered after the fence `*after`, unless that is 0. */
  rg_status (*need)(void* context, uint32_t tensor, rg_fence* after);
  /* As rg_hooks.ready, once `fence` has passed; 0: now. */
  void (*ready)(void* context, uint32_t tensor, rg_fence fence);
  /* Reports that an RG_PHASE_* begins once `fence` has passed; 0: now. As rg_hooks.backward. */
  void (*phase)(void* context, uint32_t phase, rg_fence fence);
  /* At most once in each step(): reports that `*sum`, in host memory, is this batch's loss_sum once `fence` has passed,
   * and stays there until step() has been called twice more. rg_step_result.loss_sum is then not read. The engine reads
   * the sum before that second call, or at the end of the run. */
  void (*late_loss)(void* context, const double* sum, rg_fence fence);
  /* [awaited_count] The dense tensors whose ready() the engine waits for, ascending, and the same in every step. For
   * other tensors the model may leave ready() out, and it may call need() at once for all tensors behind one awaited
   * tensor up to and including the next. Null: the engine waits for every ready(). */
  const uint32_t* awaited;
  uint32_t awaited_count;
  /* As rg_hooks.done, once `fence` has passed (0: now): the work that reads the weight in this pass is behind it. Only
   * for models with RG_MODEL_RELEASES; null: weights stay in memory during the step. */
  void (*done)(void* context, uint32_t tensor, rg_fence fence);
};

/* Extension of an executor's component: the memory and the arithmetic of a device; one instance per rank. With it, the
 * engine keeps weights, gradients and all that strategies exchange on the device where the executor's models compute,
 * and avoids copies through the host. All functions but sensors(), mark(), elapsed(), gemm(), handle() and
 * export_memory() must be there.
 *
 *  - Streams. An instance has streams 0 .. streams - 1. A stream executes its work in the order of the calls. Work of
 *    different streams, and of the streams of the model and of the transport, is ordered by fences only: wait_for() and
 *    record(). No function waits for the device except wait(), allocate*(), release*() and close().
 *  - Addresses are in memory from allocate() or allocate_host(); where a function accepts both, the device reads and
 *    writes either. Buffers may begin and end at any element. The contents of memory are read and written when the
 *    stream executes the work, not during the call.
 *  - Threads. [loop] below includes [main], and an evaluation on the compute thread. Only one function of an instance
 *    runs at a time, except those marked [any].
 *  - Errors. An error of enqueued work may surface in any later call. */
#define RG_EXT_DEVICE "regatta.device/1"

typedef enum rg_rule { RG_SGD = 1, RG_MOMENTUM = 2, RG_NESTEROV = 3, RG_ADAGRAD = 4, RG_ADAM = 5 } rg_rule;

/* One update of elements with the same settings. All values are fp32, and the operations are in this order. g is the
 * gradient, w the weight, a and b the optimizer's state:
 *   d = g * factor + decay * w
 *   SGD        w -= lr * d
 *   MOMENTUM   a = first * a + d;   w -= lr * a
 *   NESTEROV   a = first * a + d;   w -= lr * (d + first * a)
 *   ADAGRAD    a += d * d;          w -= lr * d / (sqrt(a) + epsilon)
 *   ADAM       a = first * a + one_minus_first * d;  b = second * b + one_minus_second * (d * d)
 *              w -= lr * a / (sqrt(b) + epsilon)         (lr and epsilon include both bias corrections) */
typedef struct rg_update {
  uint32_t struct_size;
  uint32_t rule; /* rg_rule */
  float factor, decay, lr, first, second, epsilon, one_minus_first, one_minus_second;
  float *a, *b; /* the rule's state; null if it has none */
} rg_update;

/* One operation for a stream. `kind` is an rg_op_kind with the meaning that it has there, except for the differences
 * below. A member means the same in every kind; one that the kind does not name here is 0 and is not read. Elements are
 * RG_F32 unless a type is named.
 *   FILL         target = value;  with index (RG_I32): target[index[i]] = value
 *   COPY         not here; use copy()
 *   AXPY         target += factor * source, both of `type`, RG_F32 or RG_F64;  with index (RG_I32):
 *                target[index[i]] += factor * source[i]
 *   SCALE        target *= factor
 *   CLIP         target *= min(1, max_norm / Euclidean norm of target); no change if the norm is not finite
 *   ACCUMULATE   target = factor * target + source, then sum += target
 *   NORM         target[0] = number of non-finite elements of source, target[1] = sum of squares of the finite ones;
 *                target is two RG_F64, to which RG_OP_ADD adds both. The order of the sum depends on count alone
 *   CONVERT      target (type) = source (source_type), between RG_F32 and RG_F16 or RG_BF16, to nearest, ties to even;
 *                if both are RG_F32: source rounded as `round_to` (RG_F16, RG_BF16) would. RG_OP_ADD adds the converted
 *                or rounded values, to RG_F32 only
 *   APPLY        does `update`; target are the weights, source the gradients
 *   TOP_K        index (RG_I32), target = indices and values of the index_count elements of source with the largest
 *                magnitude, in ascending order of index; of equal ones the first; NaN is the largest
 *   SELECT       index (RG_I32), target = indices and values of the first index_count elements of source of magnitude >
 *                threshold, in ascending order of index;
 *                *found = the number of all such elements, which may be larger than index_count
 *   GATHER_ROWS  target[i] = source[index[i]]; index is RG_I64, and a row has `row` elements
 *   SCATTER_ROWS target[index[i]] = source[i], with the same sizes; RG_OP_ADD adds
 * An index outside the buffer that it points into is ignored. */
typedef struct rg_work {
  uint32_t struct_size;
  uint32_t kind;
  uint32_t flags;       /* RG_OP_ADD */
  uint32_t type;        /* of target, and of source except in CONVERT and NORM */
  uint32_t source_type; /* CONVERT */
  uint32_t round_to;    /* CONVERT of RG_F32 to RG_F32 */
  void* target;         /* is written */
  const void* source;   /* is read only */
  float* sum;           /* ACCUMULATE */
  void* index;          /* null: none. TOP_K and SELECT write it */
  /* Elements of target and source; with an index, of the one of them that it points into (TOP_K, SELECT, GATHER_ROWS:
   * source; else target). */
  uint64_t count;
  uint64_t index_count; /* elements of index, and elements or rows of the other one of target and source */
  uint64_t row;         /* GATHER_ROWS, SCATTER_ROWS: elements of a row */
  double value, factor, max_norm, threshold;
  uint64_t* found;         /* SELECT: an address in memory from allocate_host(), written by the stream */
  const rg_update* update; /* APPLY: read during the call */
} rg_work;

/* Readings of a device's sensors. The caller fills in NaN and empty strings before sensors(), which leaves unknown
 * readings unchanged. */
typedef struct rg_sensors {
  uint32_t struct_size;
  double utilisation;               /* fraction of recent time (e.g. the last second) in which a kernel ran, 0 to 1 */
  double memory_used, memory_total; /* bytes; `memory_used` by all processes together */
  double clock, memory_clock;       /* Hz */
  double power;                     /* W */
  double energy;                    /* J since a fixed point in time */
  double temperature;               /* degrees Celsius */
  char name[96], driver[96];        /* the device; the driver and its version; ended by 0 */
} rg_sensors;

typedef struct rg_device {
  uint32_t struct_size;
  const char* kind; /* as rg_executor.device */
  /* [main] Opens device `index` with `streams` streams. Stream 0 is for arithmetic, all further ones for copies that
   * overlap with it. `host` is valid until close() returns. Fails with RG_E_UNSUPPORTED if there is no such device; the
   * text says why. */
  rg_status (*open)(const rg_host* host, int32_t index, uint32_t streams, void** self);
  /* [main] Waits for all streams and releases all memory that is still allocated. */
  void (*close)(void* self);
  /* [loop] Allocates device memory, aligned to 256 bytes. It is zeroed before any later work of any stream. */
  rg_status (*allocate)(void* self, uint64_t bytes, void** address);
  /* [loop] Requires: no stream uses the memory any more. */
  void (*release)(void* self, void* address);
  /* [loop] Allocates pinned host memory, which the device reads and writes at full speed, aligned to 256 bytes. Its
   * contents are undefined. */
  rg_status (*allocate_host)(void* self, uint64_t bytes, void** address);
  /* [loop] Requires: no stream uses the memory any more. */
  void (*release_host)(void* self, void* address);
  /* [loop] Enqueues a copy of at least one byte, in any direction or within one memory. The two ranges must not
   * overlap. */
  rg_status (*copy)(void* self, uint32_t stream, void* to, const void* from, uint64_t bytes);
  /* [loop] Enqueues work. Fails with RG_E_UNSUPPORTED if the device cannot do this kind; the text names it. */
  rg_status (*work)(void* self, uint32_t stream, const rg_work* work);
  /* [loop] Makes later work of the stream start after the fence has passed. The fence is not 0, and may be from this
   * instance, from a model or from a transport. */
  rg_status (*wait_for)(void* self, uint32_t stream, rg_fence fence);
  /* [loop] Enqueues a fence behind the work that the stream has so far. */
  rg_status (*record)(void* self, uint32_t stream, rg_fence* fence);
  /* [any] Returns RG_OK if the fence has passed, RG_AGAIN if it has not, and errors of the device. */
  rg_status (*passed)(void* self, rg_fence fence);
  /* [any] Waits until the fence has passed. */
  rg_status (*wait)(void* self, rg_fence fence);
  /* [loop] Makes the device call f(context) once, soon after the work that the stream has so far is done, on a thread
   * of the driver. f must not block or call the device; it may only wake another thread. It saves the engine from
   * polling passed(). No call comes after close() has returned. */
  rg_status (*notify)(void* self, uint32_t stream, void (*f)(void* context), void* context);
  /* [any] Reads the sensors. Does not wait for the device's work, but may take milliseconds. Null: the device has no
   * sensors. */
  rg_status (*sensors)(void* self, rg_sensors* out);
  /* mark() and elapsed() measure time by the device's own clock; a device has both or neither. */
  /* [loop] As record(), but the fence may be passed to elapsed(). It is valid until the stream has 4096 more of
   * them. */
  rg_status (*mark)(void* self, uint32_t stream, rg_fence* fence);
  /* [any] Writes the time in nanoseconds from when the device passed `from` until it passed `to`; negative if `to`
   * passed first. Both fences must have passed, and must come from mark(), or from a model's phase() or
   * late_loss() (rg_device_hooks). */
  rg_status (*elapsed)(void* self, rg_fence from, rg_fence to, double* ns);
  /* [loop] Enqueues c = alpha * op(a) * op(b) + beta * c (rg_gemm), of at least one element; all three are in device
   * memory. `what` is read during the call. Null: the device has none, and refuses RG_OP_GEMM. */
  rg_status (*gemm)(void* self, uint32_t stream, const rg_gemm* what, const void* a, const void* b, void* c);
  /* [loop] Makes the device current for the calling thread, and writes the stream's handle, by which a strategy
   * enqueues kernels of its own: of kind "cuda" a cudaStream_t. Null: strategies can enqueue none. */
  rg_status (*handle)(void* self, uint32_t stream, void** handle);
  /* [loop] Writes to `*fd` a new file descriptor of the memory that holds [address, address + bytes), which lies in
   * memory from allocate(), and to `*offset` where `address` is in it. The descriptor is a dma-buf, or what this kind
   * of device has in its place. The engine passes both to a transport that registers the memory (rg_memory.dma_buf),
   * and closes the descriptor. -1: this memory has none. Null: the device exports none. Since 1.1. */
  rg_status (*export_memory)(void* self, void* address, uint64_t bytes, int32_t* fd, uint64_t* offset);
} rg_device;

/* Extension of a transport's host: where the rank's dense weights and gradients are. Without it they are in host
 * memory. */
#define RG_EXT_ARENA_MEMORY "regatta.arena_memory/1"

typedef struct rg_arena_memory {
  uint32_t struct_size;
  uint32_t memory; /* RG_MEMORY_* */
  int32_t device;  /* index of the device, if `memory` is a device's */
} rg_arena_memory;

#ifdef __cplusplus
}
#endif
#endif

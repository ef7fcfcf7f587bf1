/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices with memory of their own, as the engine sees them: an extension of the executor that computes there. What runs
 * on the host alone needs none of this. The rules of abi.h hold.
 */
#ifndef REGATTA_DEVICE_H
#define REGATTA_DEVICE_H

#include <regatta/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Extension of an executor's component (rg_component.extension). */
#define RG_EXT_DEVICES "regatta.devices/1"

/* rg_model_setup.precision of devices, beside RG_F32, RG_F16 and RG_BF16: as RG_F32, but products may round what they
 * multiply to TF32 (8 bits of exponent, 10 of mantissa). */
enum { RG_TF32 = 64 };

typedef struct rg_devices {
  uint32_t struct_size;
  uint32_t memory; /* what it is about: RG_MEMORY_CUDA */
  /* [main] How many there are, at least one. RG_E_UNSUPPORTED: none, or nothing to drive them; the text says which. */
  rg_status (*count)(const rg_host* host, uint32_t* count);
  /* [main] Writes what device `index` is, one line ended by 0: "NVIDIA H200, 139.8 GiB, compute capability 9.0". */
  rg_status (*describe)(const rg_host* host, uint32_t index, char* text, uint64_t room);
  /* [main] Writes how device `a` reaches device `b`, one line, in the words of `nvidia-smi topo -m`: "NV18", "PIX", "PXB",
   * "PHB", "NODE", "SYS"; of a device and itself what of the host is near: "CPUs 0-31, NUMA node 0". "": not known. */
  rg_status (*topology)(const rg_host* host, uint32_t a, uint32_t b, char* text, uint64_t room);
} rg_devices;

/* A device's memory and its arithmetic: extension of an executor's component, an instance for every rank. With it, the
 * engine keeps weights, gradients and all that strategies exchange on the device where the executor's models compute, and
 * nothing goes through the host that need not.
 *
 *  - Streams. An instance has streams 0 .. streams - 1, each of which does one thing after the other, in the order of the
 *    calls. Between streams, and towards those of the model and of the transport, only fences order: hold() and record().
 *    No call but wait(), allocate*(), release*() and close() waits for the device.
 *  - Addresses are of allocate()'s memory or of allocate_host()'s, wherever both can be meant: the device reads and writes
 *    either. Buffers may begin and end at any element. Their contents count when the stream gets there.
 *  - Threads. [loop] below includes [main]. Calls of one instance come one at a time, but for those marked [any]. */
#define RG_EXT_DEVICE "regatta.device/1"

typedef enum rg_rule { RG_SGD = 1, RG_MOMENTUM = 2, RG_NESTEROV = 3, RG_ADAGRAD = 4, RG_ADAM = 5 } rg_rule;

/* One update of elements that share all of this. All in fp32, in this order; g the gradient, w the weight, a and b state:
 *   d = g * factor + decay * w
 *   SGD        w -= lr * d
 *   MOMENTUM   a = first * a + d;   w -= lr * a
 *   NESTEROV   a = first * a + d;   w -= lr * (d + first * a)
 *   ADAGRAD    a += d * d;          w -= lr * d / (sqrt(a) + epsilon)
 *   ADAM       a = first * a + one_minus_first * d;  b = second * b + one_minus_second * (d * d)
 *              w -= lr * a / (sqrt(b) + epsilon)            (the corrections of both biases are in lr and epsilon) */
typedef struct rg_update {
  uint32_t struct_size;
  uint32_t rule; /* rg_rule */
  float factor, decay, lr, first, second, epsilon, one_minus_first, one_minus_second;
  float *a, *b; /* as the rule has state, else null */
} rg_update;

/* What a stream is to compute. kind is one of rg_op_kind, with its meaning there, as far as nothing else is said here.
 * Elements are RG_F32 where no type is named. Without an index: count elements of target and of source.
 *   FILL        target = a;  with index (RG_I32): target[index[i]] = a, index_count of them
 *   COPY        use copy()
 *   AXPY        target += a * source, of RG_F32 or RG_F64; with index (RG_I32): target[index[i]] += a * source[i]
 *   SCALE       target *= a
 *   CLIP        target *= min(1, a / its Euclidean norm); nothing where the norm is not finite
 *   ACCUMULATE  target = a * target + source, then index += target (all of them RG_F32)
 *   NORM        target[0] = elements of source that are not finite, target[1] = the sum of squares of the others; target
 *               is two RG_F64, and with RG_OP_ADD both are added to it; the order of the sum depends on count alone
 *   CONVERT     target (type) = source (source_type): between RG_F32 and RG_F16 or RG_BF16, to the nearest, ties to even;
 *               both RG_F32: source rounded as `wire` (RG_F16, RG_BF16) would; with RG_OP_ADD, to RG_F32 only, added
 *   APPLY       update: target are the weights, source the gradients
 *   TOP_K       index, target = places and values of the index_count elements of source (count) largest by magnitude, in
 *               ascending order of place; of equal ones the first; NaN is the largest
 *   SELECT      likewise of all with a magnitude above a, the first index_count of them; *found = how many there are,
 *               also where that is more
 *   GATHER      target[i] = source[index[i]]; index (RG_I64) has index_count elements, a row is `row` elements
 *   SCATTER     target[index[i]] = source[i], likewise; with RG_OP_ADD added
 * An index that names an element outside (of count elements of target; of source in GATHER) is left out. */
typedef struct rg_work {
  uint32_t struct_size;
  uint32_t kind;
  uint32_t flags; /* RG_OP_ADD */
  uint32_t type, source_type, wire;
  void* target;
  const void* source;
  void* index;
  uint64_t count, index_count, row;
  double a;
  uint64_t* found;         /* SELECT: in memory of allocate_host() */
  const rg_update* update; /* APPLY; read during the call */
} rg_work;

/* What a device's sensors say. Who asks fills in NaN and empty texts, and what the device does not know stays so. */
typedef struct rg_sensors {
  uint32_t struct_size;
  uint32_t reserved;
  double utilisation;               /* share of the time of late (a second, say) in which anything ran on it, 0 to 1 */
  double memory_used, memory_total; /* bytes; used by all processes together */
  double clock, memory_clock;       /* Hz */
  double power;                     /* W */
  double energy;                    /* J, since a moment that stays the same */
  double temperature;               /* degrees Celsius */
  char name[96], driver[96];        /* of the device, of what drives it and its version; ended by 0 */
} rg_sensors;

typedef struct rg_device {
  uint32_t struct_size;
  uint32_t memory; /* RG_MEMORY_CUDA: the only kind there is */
  /* [main] RG_E_UNSUPPORTED where there is no such device; the text says why. Stream 0 is for arithmetic, the others are
   * for copies that must overlap with it. */
  rg_status (*open)(const rg_host* host, int32_t index, uint32_t streams, void** self);
  void (*close)(void* self); /* [main] waits for all streams; releases all memory that is left */
  /* [loop] Memory of the device, zeroed before anything in any stream, aligned to 256 bytes. */
  rg_status (*allocate)(void* self, uint64_t bytes, void** address);
  void (*release)(void* self, void* address); /* [loop] no stream touches it any more */
  /* [loop] Memory of the host that the device reads and writes at full speed (pinned), aligned to 256 bytes. */
  rg_status (*allocate_host)(void* self, uint64_t bytes, void** address);
  void (*release_host)(void* self, void* address); /* [loop] likewise */
  /* [loop] In any direction, also within one memory; the two do not overlap. */
  rg_status (*copy)(void* self, uint32_t stream, void* to, const void* from, uint64_t bytes);
  /* [loop] RG_E_UNSUPPORTED: not this kind; the text names it. */
  rg_status (*work)(void* self, uint32_t stream, const rg_work* work);
  /* [loop] What the stream is given from now on waits for the fence, whoever made it: this instance, a model, a
   * transport. */
  rg_status (*hold)(void* self, uint32_t stream, rg_fence fence);
  /* [loop] A fence behind all that the stream was given so far. */
  rg_status (*record)(void* self, uint32_t stream, rg_fence* fence);
  rg_status (*passed)(void* self, rg_fence fence); /* [any] RG_OK: it has; RG_AGAIN: not yet; errors of the device */
  rg_status (*wait)(void* self, rg_fence fence);   /* [any] until it has */
  /* [loop] Calls f(context) [any] once all that the stream was given so far is done, soon after, on a thread that must
   * not be kept: f wakes somebody, and calls nothing of the device. So nobody has to ask passed() again and again. */
  rg_status (*notify)(void* self, uint32_t stream, void (*f)(void* context), void* context);
  /* [any] Does not wait for what the device does; may take milliseconds. Null: it has none. */
  rg_status (*sensors)(void* self, rg_sensors* out);
  /* Times, by the device's own clock; both or neither. */
  /* [loop] As record(), for elapsed() too. It may be used again after 4096 more of the stream. */
  rg_status (*mark)(void* self, uint32_t stream, rg_fence* fence);
  /* [any] How long after `from` the device passed `to`, in nanoseconds; negative: before. Both have been passed, and are
   * mark()'s or those that a model gives in rg_hooks.phase and in rg_step_result.late_fence. */
  rg_status (*elapsed)(void* self, rg_fence from, rg_fence to, double* ns);
} rg_device;

/* Where a rank's tensors live: extension of a transport's host. Without it they are the host's. */
#define RG_EXT_PLACE "regatta.place/1"

typedef struct rg_place {
  uint32_t struct_size;
  uint32_t memory; /* RG_MEMORY_* */
  int32_t device;  /* its index, on devices */
  uint32_t reserved;
} rg_place;

#ifdef __cplusplus
}
#endif
#endif

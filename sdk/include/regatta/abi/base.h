/* SPDX-License-Identifier: Apache-2.0
 *
 * The types that models, executors, transports and strategies share: status, host, parameters, components, memory.
 * The rules of abi.h hold.
 */
#ifndef REGATTA_ABI_BASE_H
#define REGATTA_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_ABI_MAJOR 1
#define RG_ABI_MINOR 1
#define RG_ENTRY_SYMBOL "regatta_plugin"
/* The most dimensions of a shape. No layout depends on it: a later version may allow more. */
#define RG_MAX_DIMS 8

#if defined(_WIN32)
#define RG_EXPORT __declspec(dllexport)
#else
#define RG_EXPORT __attribute__((visibility("default")))
#endif

/* ---------------------------------------------------------------------------------------------------- status --- */

typedef int32_t rg_status;

enum {
  RG_OK = 0,
  RG_DONE = 1,      /* only of rg_strategy_host.submit(): the operation has ended, and no completion follows */
  RG_AGAIN = 2,     /* not now; of a transport's send, recv or collective: no room, the engine queues and retries it */
  RG_TIMEOUT = 3,   /* only of a transport's close(): the deadline passed; the run fails */
  RG_NOTIFIED = 4,  /* only in a completion of a transport: a peer's put has arrived (ext/one_sided.h) */
  RG_E_CONFIG = -1, /* the experiment cannot run as configured; its file has to change: exit code 2 */
  RG_E_OPERATION = -2,   /* this operation failed; the instance remains usable */
  RG_E_PEER = -3,        /* a peer is gone or broke the protocol; exchanges with other peers can go on */
  RG_E_DEVICE = -4,      /* the device or its memory is unusable; this rank cannot go on */
  RG_E_PLUGIN = -5,      /* a bug in the plugin; the plugin's state is unknown: exit code 3 */
  RG_E_UNSUPPORTED = -6, /* not compiled in, or not available on this machine: the case is skipped, exit code 77 */
  RG_E_CANCELLED = -7    /* ended by cancel(), or because the run fails */
};

enum { RG_LOG_ERROR = 0, RG_LOG_WARNING = 1, RG_LOG_INFO = 2, RG_LOG_DEBUG = 3 };

/* The functions that the engine offers to every instance. An instance may use its host from the call that passes it
 * until its destroy() returns. */
typedef struct rg_host {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  void* context;
  /* [any] Writes `text`, one line without a newline, to the engine's log. `level` is one of RG_LOG_*. */
  void (*log)(void* context, int32_t level, const char* text);
  /* [any] Copies `text`, one line, as the reason of this instance's next error. A later text replaces an earlier one.
   * Has no other effect. Returns `status`, for the caller to return. */
  rg_status (*fail)(void* context, rg_status status, const char* text);
  /* [any] Returns the table of functions with this id ("regatta.authenticate/1"), valid as long as the host, or null if
   * the host has none. */
  const void* (*extension)(void* context, const char* id);
} rg_host;

/* ------------------------------------------------------------------------------------------------- parameters --- */

enum {
  RG_PARAM_BOOL = 1,
  RG_PARAM_INT = 2,
  RG_PARAM_FLOAT = 3,
  RG_PARAM_STRING = 4,
  RG_PARAM_INTS = 5,   /* array of integers */
  RG_PARAM_FLOATS = 6, /* array of floats */
  RG_PARAM_STRINGS = 7 /* array of strings; a user may give one string without brackets */
};

enum {
  RG_UNIT_NONE = 0,
  RG_UNIT_BYTES = 1,          /* an RG_PARAM_INT in bytes; "64KiB" is accepted */
  RG_UNIT_NANOSECONDS = 2,    /* an RG_PARAM_INT in ns; "50us" is accepted */
  RG_UNIT_BITS_PER_SECOND = 3 /* an RG_PARAM_FLOAT in bit/s; "10Gbit/s" is accepted */
};

/* One parameter of a component, which a user sets under [model], [transport] or [strategy]. `name` must be neither
 * "plugin" nor the id of a component of the same kind, in any plugin, and matches [a-z][a-z0-9_]*, at most 64
 * characters. `min` and `max` bound a number, or each element of an array, inclusively; an infinity leaves one side
 * open. If both are NaN or both are 0, the parameter has no bounds. The engine refuses a plugin whose default is not
 * allowed. */
typedef struct rg_param {
  uint32_t struct_size;
  uint32_t type;
  uint32_t unit;
  const char* name;
  const char* help;          /* one line */
  const char* default_value; /* in TOML's notation: 5, 0.5, true, "text", [1, 2]; null: the user must give a value */
  double min, max;
  const char* const* choices; /* strings and arrays of them: the allowed values, ended by null; null: any string */
} rg_param;

/* The value of a parameter, within its bounds. Values are passed as an array, in the order of the component's table of
 * parameters, valid during the call. The parameter's type says which members are set: i (bool as 0 or 1, int), f
 * (float), s (string), ints, floats or strings together with count. The size of this struct never changes. */
typedef struct rg_value {
  int64_t i;
  double f;
  const char* s;
  const int64_t* ints;
  const double* floats;
  const char* const* strings;
  uint64_t count;
} rg_value;

/* ------------------------------------------------------------------------------------------------- components --- */

enum { RG_KIND_MODEL = 1, RG_KIND_EXECUTOR = 2, RG_KIND_TRANSPORT = 3, RG_KIND_STRATEGY = 4 };

typedef struct rg_component {
  uint32_t struct_size;
  uint32_t kind;
  const char* id;      /* [a-z][a-z0-9_]*, at most 64 characters; unique in the plugin among components of one kind */
  const char* summary; /* one line */
  const rg_param* params;
  uint32_t param_count;
  /* rg_model, rg_executor, rg_transport or rg_strategy, by `kind`. May be null in a model that is a graph
   * (RG_EXT_GRAPH). */
  const void* functions;
  /* [any] Returns this component's table of functions with this id, or null. The pointer itself may be null. */
  const void* (*extension)(const char* id);
} rg_component;

typedef struct rg_plugin {
  uint32_t struct_size;
  uint16_t abi_major; /* RG_ABI_MAJOR of the headers that the plugin was compiled with */
  uint16_t abi_minor;
  const char* name;
  const char* version;
  const rg_component* const* components;
  uint32_t component_count;
} rg_plugin;

/* [main] The type of the exported function `regatta_plugin`. `host` is valid until the process ends. The description
 * that it returns must stay valid as long as the plugin is loaded; the engine never frees it. Null: the engine refuses
 * the plugin, with the text that it passed to host->fail(). */
typedef const rg_plugin* (*rg_entry)(const rg_host* host);

/* ----------------------------------------------------------------------------------------------------- memory --- */

/* Types of elements. The packed types have several elements in a byte, the first in the lowest bits; their buffers
 * begin and end at whole bytes. */
typedef enum rg_type {
  RG_F32 = 1,
  RG_F16 = 2,
  RG_BF16 = 3,
  RG_F64 = 4,
  RG_I32 = 5,
  RG_I64 = 6,
  RG_U8 = 7,
  RG_I8 = 8,
  RG_F8_E4M3 = 9,  /* 4 bits of exponent, 3 of mantissa, no infinity (OCP 8-bit floating point) */
  RG_F8_E5M2 = 10, /* 5 bits of exponent, 2 of mantissa */
  RG_U4 = 11,      /* packed: two in a byte */
  RG_U1 = 12       /* packed: eight in a byte */
} rg_type;

/* How a collective combines the members' elements. AVERAGE: the sum divided by the number of members. */
typedef enum rg_reduction { RG_SUM = 1, RG_AVERAGE = 2, RG_MAX = 3 } rg_reduction;

/* Where memory is; a bit mask where several places are meant. A device is of a kind that its executor names
 * (ext/device.h). All devices of a run are of one kind. */
enum { RG_MEMORY_HOST = 1, RG_MEMORY_DEVICE = 2 };

/* The number of a region: memory that a transport knows before a transfer names it (ext/regions.h). The engine creates
 * a region and registers it with the transport; a region never moves. 0: no memory. */
typedef uint32_t rg_region;

/* A range of elements in a region. The size of this struct never changes. */
typedef struct rg_buffer {
  rg_region region;
  uint32_t type;   /* rg_type */
  uint64_t offset; /* bytes from the region's start */
  uint64_t count;  /* elements */
} rg_buffer;

/* A marker in a stream of a device; 0: no fence. A fence passes once the work before it in its stream is done. An
 * operation that carries a fence is ordered on the device; the host does not wait for it. The kind of device defines
 * the value (ext/device.h); it is opaque to the engine. A fence belongs to the instance that recorded it. It is valid
 * until that instance has recorded 256 more fences in the same stream; after that the same value may mark a later point
 * of that stream, but never an earlier one. */
typedef uint64_t rg_fence;

/* The report that a submitted operation has ended. Its writer sets all members. The size of this struct never
 * changes. */
typedef struct rg_completion {
  uint64_t cookie;
  rg_status status;     /* RG_OK, an error (RG_E_*), or RG_NOTIFIED: then no operation of this rank has ended */
  int32_t vendor_error; /* of a transport, with an error: its library's own code, for the message; 0: none */
  /* Of a receive: bytes of payload received, counted in the type that they have in memory. Of RG_OP_SELECT: bytes of
   * the values that were found. With RG_NOTIFIED: bytes of the put. Else without meaning. */
  uint64_t bytes;
  /* On devices: once it has passed, the operation has read its source and written its target; 0: it has already. */
  rg_fence fence;
  /* Of a transport: when the operation ended, on the clock CLOCK_MONOTONIC, as its hardware or its own thread saw it;
   * 0: unknown. */
  uint64_t time_ns;
} rg_completion;

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What all of the interface shares: status, the host, parameters, components, memory. The rules are those of abi.h.
 */
#ifndef REGATTA_ABI_BASE_H
#define REGATTA_ABI_BASE_H

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

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension of the host of an executor, a transport or a strategy: spans, which say what an instance did and when. The
 * host has them in a run that records a trace, else it has no such table. The rules of abi.h hold.
 */
#ifndef REGATTA_EXT_TRACE_H
#define REGATTA_EXT_TRACE_H

#include <regatta/abi/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RG_EXT_TRACE "regatta.trace/1"

/* A span of time. The texts are string literals of the plugin, or come from rg_trace.text. */
typedef struct rg_span {
  uint32_t struct_size;
  /* A row of the trace, from 0, numbered by the instance. Two spans of a track are disjoint, or one contains the
   * other. */
  uint32_t track;
  const char* name;          /* what the instance did, such as "all_reduce" or "conv2d" */
  const char* category;      /* what kind of work it is, such as "communication"; by it a reader filters */
  uint64_t begin_ns, end_ns; /* begin <= end; of a strategy by its host's now(), else on CLOCK_MONOTONIC */
  const char* number_name;   /* what `number` counts, such as "bytes" or "step"; null: there is no number */
  uint64_t number;
} rg_span;

typedef struct rg_trace {
  uint32_t struct_size;
  void* context;
  /* [any] Not 0 while spans are recorded; the engine writes it at any time. An instance reads it (as a relaxed atomic)
   * before it reads a clock for a span, so that a step that is not recorded costs one read. */
  const uint32_t* on;
  /* [any] Records a span that has ended; the struct is copied. Allocates nothing, takes no lock and does not block.
   * Drops the span, and counts it, if the memory for spans is full or recording has ended. */
  void (*span)(void* context, const rg_span* span);
  /* [main] Returns a copy of `text` for the spans of this instance, such as the name of a layer. It lives as long as
   * the trace, which may outlive the instance. */
  const char* (*text)(void* context, const char* text);
} rg_trace;

#ifdef __cplusplus
}
#endif
#endif

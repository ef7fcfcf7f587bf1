/* SPDX-License-Identifier: Apache-2.0
 *
 * A strategy in C99, over abi.h alone: synchronous training with an all-reduce along a star. When a step's gradients
 * are final, every worker sends them to worker 0, which adds them in ascending order of rank and sends the sum back.
 *
 * Without coroutines a strategy is a state machine: submit() begins an operation and returns; completed() reports its
 * end; when no operation of the current phase is outstanding, the next phase begins. advance() does that. */
#include <regatta/abi.h>

#include <stdlib.h>

enum phase { IDLE, COLLECT, SPREAD, APPLY, NORM, COMMIT, FINISHED };

typedef struct star {
  const rg_strategy_host* host;
  enum phase phase;
  uint32_t outstanding; /* operations of this phase that have not ended */
  uint64_t step, activity;
  rg_buffer total; /* 2 doubles, for clipping by global norm */
} star;

/* --------------------------------------------------------------------------------------- before anything starts --- */

/* [any] SYNCHRONOUS promises that all workers have the same weights after every step; a run checks the final ones. */
static rg_status plan(const rg_host* host, const rg_value* values, const rg_cluster* cluster, rg_plan* out) {
  (void)host, (void)values, (void)cluster;
  out->flags = RG_PLAN_SYNCHRONOUS;
  out->lanes = 1;
  return RG_OK;
}

/* [any] Pairs of ranks that exchange no messages are not connected. */
static uint32_t talks(const rg_value* values, const rg_cluster* cluster, uint32_t a, uint32_t b) {
  (void)values, (void)cluster;
  return a == 0 || b == 0;
}

/* [main] The engine keeps the optimizer's state for the weights that a rank owns. Here every worker owns all
 * weights. */
static rg_status create(const rg_strategy_host* host, const rg_value* values, void** self) {
  rg_buffer weights;
  rg_status status;
  star* s = calloc(1, sizeof *s);
  (void)values;
  if (!s) return host->host->fail(host->host->context, RG_E_OPERATION, "star: out of memory");
  s->host = host; /* stays valid until destroy() returns */
  status = host->own(host->context, RG_ROLE_WORKER, 0, host->arena->count, &weights);
  if (status == RG_OK) status = host->alloc(host->context, RG_F64, 2, &s->total);
  if (status != RG_OK) {
    free(s); /* an instance that create() refuses is never destroyed */
    return status;
  }
  *self = s;
  return RG_OK;
}

/* [main] */
static void destroy(void* self) {
  free(self);
}

/* ------------------------------------------------------------------------------------------------------- a step --- */

/* RG_OK: completed() will report the end. RG_DONE: the operation has ended. Negative: it failed. */
static rg_status submit(star* s, const rg_op* op) {
  const rg_status status = s->host->submit(s->host->context, op);
  if (status == RG_OK) ++s->outstanding;
  return status < 0 ? status : RG_OK;
}

/* Begins one operation with each worker that this worker exchanges messages with. Every operation is a struct that
 * begins with an rg_op; the engine reads no further than its struct_size. */
static rg_status exchange(star* s, uint32_t kind, uint32_t flags) {
  const rg_cluster* cluster = s->host->cluster;
  const uint32_t first = cluster->rank == 0 ? 1 : 0, end = cluster->rank == 0 ? cluster->workers : 1;
  rg_status status = RG_OK;
  uint32_t peer;
  for (peer = first; peer < end && status == RG_OK; ++peer) {
    const rg_op_transfer transfer = {.op = {.struct_size = sizeof transfer, .kind = kind},
                                     .peer = peer,
                                     .buffer = s->host->arena->gradients,
                                     .flags = flags};
    status = submit(s, &transfer.op);
  }
  return status;
}

/* The optimizer's update, of all weights. */
static rg_status apply(star* s) {
  const rg_op_apply op = {.op = {.struct_size = sizeof op, .kind = RG_OP_APPLY},
                          .role = RG_ROLE_WORKER,
                          .step = s->step,
                          .gradient = s->host->arena->gradients};
  return submit(s, &op.op);
}

static rg_status norm(star* s) {
  const rg_op_norm op = {
      .op = {.struct_size = sizeof op, .kind = RG_OP_NORM}, .role = RG_ROLE_WORKER, .target = s->total};
  return submit(s, &op.op);
}

static rg_status commit(star* s) {
  const rg_op_commit op = {.op = {.struct_size = sizeof op, .kind = RG_OP_COMMIT},
                           .role = RG_ROLE_WORKER,
                           .step = s->step,
                           .total = s->total};
  return submit(s, &op.op);
}

/* Begins the operations of the current phase. */
static rg_status begin(star* s) {
  const int root = s->host->cluster->rank == 0;
  const int deferred = s->host->flags & RG_HOST_DEFERRED; /* clipping by global norm: APPLY does not update yet */
  switch (s->phase) {
  case COLLECT: /* receives that add take effect in the order in which they are posted: ascending order of rank */
    return root ? exchange(s, RG_OP_RECV, RG_OP_ADD) : exchange(s, RG_OP_SEND, 0);
  case SPREAD: return root ? exchange(s, RG_OP_SEND, 0) : exchange(s, RG_OP_RECV, 0);
  case APPLY: return apply(s);
  case NORM: return deferred ? norm(s) : RG_OK;
  case COMMIT: return deferred ? commit(s) : RG_OK;
  default: return RG_OK;
  }
}

/* Begins the next phase as long as no operation is outstanding. */
static rg_status advance(star* s) {
  while (s->outstanding == 0 && s->phase != IDLE) {
    rg_status status;
    ++s->phase;
    if (s->phase == FINISHED) {
      s->phase = IDLE; /* before done(): the engine may begin the next step at once */
      s->host->done(s->host->context, s->activity, RG_OK);
      return RG_OK;
    }
    status = begin(s);
    if (status != RG_OK) return status;
  }
  return RG_OK;
}

/* [loop] All gradients of this step are final. Returns at once; done() reports that the next step may begin. */
static rg_status end_step(void* self, uint64_t step, uint64_t activity) {
  star* s = self;
  s->step = step;
  s->activity = activity;
  s->phase = COLLECT;
  {
    const rg_status status = begin(s);
    return status == RG_OK ? advance(s) : status;
  }
}

/* [loop] Never called within submit(). An error, e.g. because a peer is gone, is returned and ends the run. */
static rg_status completed(void* self, const rg_completion* completions, uint32_t count) {
  star* s = self;
  uint32_t i;
  for (i = 0; i < count; ++i) {
    --s->outstanding;
    if (completions[i].status != RG_OK)
      return s->host->host->fail(s->host->host->context, completions[i].status, "star: an operation failed");
  }
  return advance(s);
}

/* ------------------------------------------------------------------------------------------------- descriptions --- */

/* A function that is left out is null: "not supported", or for begin_step and finish "ends at once". */
static const rg_strategy functions = {.struct_size = sizeof(rg_strategy),
                                      .plan = plan,
                                      .talks = talks,
                                      .create = create,
                                      .destroy = destroy,
                                      .end_step = end_step,
                                      .completed = completed};

static const rg_component component = {.struct_size = sizeof(rg_component),
                                       .kind = RG_KIND_STRATEGY,
                                       .id = "star",
                                       .summary = "example in C: worker 0 adds up all gradients",
                                       .functions = &functions};

static const rg_component* const components[] = {&component};

static const rg_plugin plugin = {.struct_size = sizeof(rg_plugin),
                                 .abi_major = RG_ABI_MAJOR,
                                 .abi_minor = RG_ABI_MINOR,
                                 .name = "custom_strategy_c",
                                 .version = "1.0",
                                 .components = components,
                                 .component_count = 1};

RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {
  (void)host;
  return &plugin;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded before all other libraries: counts allocations of certain libraries, and forwards to glibc. The return
 * address tells which library calls, so this file also has to define C++'s operator new. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

#define EXPORT __attribute__((visibility("default")))

enum { most_ranges = 8, large = 4096 };
static uintptr_t from[most_ranges], to[most_ranges];
static unsigned ranges;
static atomic_uint_fast64_t counted, counted_large;

/* Watches code in [first, end) from now on. Returns 0 if there is no room. Not thread-safe. */
EXPORT int regatta_watch_allocations(uintptr_t first, uintptr_t end) {
  if (ranges == most_ranges) return 0;
  from[ranges] = first;
  to[ranges] = end;
  ++ranges;
  return 1;
}
/* Returns the number of blocks that watched code has allocated. */
EXPORT uint64_t regatta_allocations(void) {
  return atomic_load_explicit(&counted, memory_order_relaxed);
}
/* Returns the number of those blocks that are larger than 4 KiB. */
EXPORT uint64_t regatta_large_allocations(void) {
  return atomic_load_explicit(&counted_large, memory_order_relaxed);
}

static void count(size_t bytes, const void* caller) {
  for (unsigned i = 0; i < ranges; ++i)
    if ((uintptr_t)caller >= from[i] && (uintptr_t)caller < to[i]) {
      atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
      if (bytes > large) atomic_fetch_add_explicit(&counted_large, 1, memory_order_relaxed);
    }
}
#define COUNT(bytes) count(bytes, __builtin_return_address(0))

EXPORT void* malloc(size_t bytes) {
  COUNT(bytes);
  return __libc_malloc(bytes);
}
EXPORT void* calloc(size_t n, size_t bytes) {
  COUNT(n * bytes);
  return __libc_calloc(n, bytes);
}
EXPORT void* realloc(void* p, size_t bytes) {
  COUNT(bytes);
  return __libc_realloc(p, bytes);
}
EXPORT void* memalign(size_t alignment, size_t bytes) {
  COUNT(bytes);
  return __libc_memalign(alignment, bytes);
}
EXPORT void* aligned_alloc(size_t alignment, size_t bytes) {
  COUNT(bytes);
  return __libc_memalign(alignment, bytes);
}
EXPORT int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (!alignment || alignment % sizeof(void*) || (alignment & (alignment - 1))) return 22; /* EINVAL */
  COUNT(bytes);
  void* p = __libc_memalign(alignment, bytes);
  if (!p) return 12; /* ENOMEM */
  *out = p;
  return 0;
}

/* operator new and new[], with and without alignment. C cannot throw: without memory the process aborts. */
static void* or_end(void* p) {
  if (!p) abort();
  return p;
}
EXPORT void* _Znwm(size_t bytes) {
  COUNT(bytes);
  return or_end(__libc_malloc(bytes ? bytes : 1));
}
EXPORT void* _Znam(size_t bytes) {
  COUNT(bytes);
  return or_end(__libc_malloc(bytes ? bytes : 1));
}
EXPORT void* _ZnwmSt11align_val_t(size_t bytes, size_t alignment) {
  COUNT(bytes);
  return or_end(__libc_memalign(alignment, bytes ? bytes : 1));
}
EXPORT void* _ZnamSt11align_val_t(size_t bytes, size_t alignment) {
  COUNT(bytes);
  return or_end(__libc_memalign(alignment, bytes ? bytes : 1));
}

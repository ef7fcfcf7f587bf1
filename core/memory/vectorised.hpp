// SPDX-License-Identifier: Apache-2.0
//
// REGATTA_VECTORISED before a function compiles it once per instruction set and picks one when the program is loaded.
// Its file must be compiled with what core/CMakeLists.txt sets for such files: no contraction into fused multiply-adds,
// so that every instruction set computes the same bits. Such a function is free, not a template, and what it calls in
// its loops is inline.
#pragma once

// Sanitizers are not ready yet when the loader runs the resolvers of these functions, and every micro-architecture
// ("arch=...") would need a resolver that knows it; instruction sets do not.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__) &&                                  \
    !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define REGATTA_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define REGATTA_VECTORISED
#endif

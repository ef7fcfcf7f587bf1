// SPDX-License-Identifier: Apache-2.0
//
// REGATTA_VECTORISED before a function definition compiles it once per instruction set (AVX-512, AVX2, baseline); the
// loader chooses one at program start. With clang, with sanitizers and on other processors it does nothing. A file that
// uses it must be compiled with the options that core/CMakeLists.txt sets for such files: no contraction into fused
// multiply-adds, so that every instruction set computes the same bits. Such a function must be free and no template,
// and the functions that its loops call must be inline.
#pragma once

// Sanitizers are not initialised when the loader runs the resolvers of these functions. Instruction sets are named
// instead of micro-architectures ("arch=..."), because the latter need a resolver that knows each of them.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__) &&                                  \
    !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define REGATTA_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define REGATTA_VECTORISED
#endif

// SPDX-License-Identifier: Apache-2.0
//
// The element types of activations. Kernels load an element as fp32, compute in fp32 and round once, when they store.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// REGATTA_EVERYWHERE marks functions that kernels and the host call, REGATTA_DEVICE those that only kernels call.
#ifdef __CUDACC__
#define REGATTA_EVERYWHERE __host__ __device__
#define REGATTA_DEVICE __device__
#else
#define REGATTA_EVERYWHERE
#define REGATTA_DEVICE
#endif

namespace cudnn {

enum class dtype : std::uint8_t { f32, f16, bf16 };

// Returns the bytes of an element.
constexpr std::size_t size_of(dtype n) {
  return n == dtype::f32 ? 4 : 2;
}

REGATTA_EVERYWHERE inline float to_float(float x) {
  return x;
}
REGATTA_EVERYWHERE inline float to_float(__half x) {
  return __half2float(x);
}
REGATTA_EVERYWHERE inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
// Stores x, rounded to nearest even; with `add`, stores the fp32 sum of *at and x, rounded to nearest even.
REGATTA_EVERYWHERE inline void put(float* at, float x, bool add = false) {
  *at = add ? *at + x : x;
}
REGATTA_EVERYWHERE inline void put(__half* at, float x, bool add = false) {
  *at = __float2half_rn(add ? __half2float(*at) + x : x);
}
REGATTA_EVERYWHERE inline void put(__nv_bfloat16* at, float x, bool add = false) {
  *at = __float2bfloat16_rn(add ? __bfloat162float(*at) + x : x);
}

// Calls f with a null pointer to the C++ type of n. f returns void.
template <class F> void by_type(dtype n, const F& f) {
  switch (n) {
  case dtype::f32: return f(static_cast<float*>(nullptr));
  case dtype::f16: return f(static_cast<__half*>(nullptr));
  case dtype::bf16: return f(static_cast<__nv_bfloat16*>(nullptr));
  }
}
// Casts p to the type of the first argument, whose value is ignored.
template <class T> T* as(T*, void* p) {
  return static_cast<T*>(p);
}
template <class T> const T* as(T*, const void* p) {
  return static_cast<const T*>(p);
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the emulated cuDNN share.
#pragma once

#include "streams.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cudnn.h>

struct cudnnContext {
  cudaStream_t stream;
};

inline float load(const void* p, cudnnDataType_t t, std::size_t i) {
  if (t == CUDNN_DATA_FLOAT) return static_cast<const float*>(p)[i];
  if (t == CUDNN_DATA_HALF) return __half2float(static_cast<const __half*>(p)[i]);
  return __bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]);
}
inline void store(void* p, cudnnDataType_t t, std::size_t i, float x) {
  if (t == CUDNN_DATA_FLOAT)
    static_cast<float*>(p)[i] = x;
  else if (t == CUDNN_DATA_HALF)
    static_cast<__half*>(p)[i] = __float2half_rn(x);
  else
    static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16_rn(x);
}

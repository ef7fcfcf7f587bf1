// SPDX-License-Identifier: Apache-2.0
//
// Launches kernels: a loop over elements, or a thread block per row. Compiled as C++, kernels run on the emulated GPU
// of tests, where a few threads of a row take turns; the declarations then have the same contracts. Included by .cu
// files and the emulated GPU only. Sizes are not checked; device::check_launch() reports launch errors.
#pragma once

#include "kernels/dtype.hpp"

#ifndef __CUDACC__
#include <cstring>
#include <functional>
#endif

#include <cuda_runtime_api.h>

namespace cudnn {

// An index of elements. If 32 bits do not suffice for an activation, or for a tensor that a kernel converts or
// unscales, model::prepare() rejects it; other tensors are unchecked.
using index_t = std::uint32_t;

#ifdef __CUDACC__

// The threads that work on one row, as one of them sees it. This thread's elements are first(), first() + step(), ...;
// the kernel has to stop at the end of the row. leads() is true in exactly one thread of the block.
class block {
public:
  __device__ index_t first() const { return threadIdx.x; }
  __device__ index_t step() const { return blockDim.x; }
  __device__ bool leads() const { return threadIdx.x == 0; }
  // Reduce `mine` of all threads of the block, always in the same order, and return the result to all of them. All
  // threads must call the same reductions in the same order; one without elements passes a neutral value. T: a number
  // of 4 or 8 bytes. The result of least() and most() is unspecified if there is a NaN.
  template <class T> __device__ T sum(T mine) const {
    return reduce(mine, [](T a, T b) { return a + b; });
  }
  template <class T> __device__ T least(T mine) const {
    return reduce(mine, [](T a, T b) { return b < a ? b : a; });
  }
  template <class T> __device__ T most(T mine) const {
    return reduce(mine, [](T a, T b) { return b > a ? b : a; });
  }

private:
  template <class T, class F> __device__ T reduce(T mine, F join) const {
    __shared__ T parts[33];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int offset = 16; offset > 0; offset /= 2) mine = join(mine, __shfl_down_sync(0xffffffff, mine, offset));
    if (lane == 0) parts[warp] = mine;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned w = 1; w < warps; ++w) mine = join(mine, parts[w]);
      parts[32] = mine;
    }
    __syncthreads();
    const T all = parts[32];
    __syncthreads(); // before the next call writes to `parts`
    return all;
  }
};

namespace detail {

template <class F> __global__ void loop(index_t n, F f) {
  const index_t step = gridDim.x * blockDim.x;
  index_t i = blockIdx.x * blockDim.x + threadIdx.x;
  while (i < n) {
    f(i);
    if (n - i <= step) return; // else i overflows
    i += step;
  }
}
template <class F> __global__ void row_loop(index_t rows, F f) {
  const block b;
  for (std::size_t r = blockIdx.x; r < rows; r += gridDim.x) f(b, static_cast<index_t>(r)); // index_t could wrap
}

} // namespace detail

// Enqueues a kernel that calls f(i) once for every i < n, in any order and in parallel; none if n is 0. f is copied;
// memory to which it points must stay valid until the kernel has run. Requires n < 2^32.
template <class F> void for_each(cudaStream_t s, std::size_t n, F f) {
  constexpr unsigned threads = 256;
  const std::size_t wanted = (n + threads - 1) / threads;
  if (n)
    detail::loop<<<static_cast<unsigned>(wanted < 65535 ? wanted : 65535), threads, 0, s>>>(static_cast<index_t>(n), f);
}
// Enqueues a kernel that calls f(block, row) for every row < rows, in each thread of the block that has the row.
// `width`, the elements of a row, only determines the number of threads. f as in for_each(). Requires rows < 2^32.
template <class F> void for_rows(cudaStream_t s, std::size_t rows, std::size_t width, F f) {
  const unsigned threads = width <= 64 ? 32 : width <= 512 ? 128 : 512;
  if (rows)
    detail::row_loop<<<static_cast<unsigned>(rows < 65535 ? rows : 65535), threads, 0, s>>>(static_cast<index_t>(rows),
                                                                                            f);
}

// Adds one to *at, atomically, in a kernel. The threads of a warp with the same address share one atomic operation.
REGATTA_DEVICE inline void count_one(unsigned long long* at) {
  const unsigned same = __match_any_sync(__activemask(), reinterpret_cast<unsigned long long>(at));
  if (threadIdx.x % 32 == static_cast<unsigned>(__ffs(static_cast<int>(same)) - 1))
    atomicAdd(at, static_cast<unsigned long long>(__popc(same)));
}

#else

// The emulated GPU of tests (tests/gpu/emulated). Enqueues `work`, which runs when the stream reaches it.
void later(cudaStream_t s, std::function<void()> work);
// team() calls f(0) to f(team_threads - 1), in threads that take turns, and returns when all have returned. Within f,
// meet() waits until all threads have called it, and shared() returns memory of all of them, 8 bytes per thread. The
// program aborts if a thread returns while another one waits in meet(); f must not throw.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) // sanitizers do not know the stacks of these threads
constexpr index_t team_threads = 1;
#else
constexpr index_t team_threads = 3;
#endif
void team(const std::function<void(index_t)>& f);
void meet();
unsigned char* shared();

class block {
public:
  explicit block(index_t thread) : thread_(thread) {}
  index_t first() const { return thread_; }
  index_t step() const { return team_threads; }
  bool leads() const { return thread_ == 0; }
  template <class T> T sum(T mine) const {
    return reduce(mine, [](T a, T b) { return a + b; });
  }
  template <class T> T least(T mine) const {
    return reduce(mine, [](T a, T b) { return b < a ? b : a; });
  }
  template <class T> T most(T mine) const {
    return reduce(mine, [](T a, T b) { return b > a ? b : a; });
  }

private:
  template <class T, class F> T reduce(T mine, F join) const {
    static_assert(sizeof(T) <= 8);
    std::memcpy(shared() + 8 * thread_, &mine, sizeof mine);
    meet();
    T all, other;
    std::memcpy(&all, shared(), sizeof all);
    for (index_t t = 1; t < team_threads; ++t) {
      std::memcpy(&other, shared() + 8 * t, sizeof other);
      all = join(all, other);
    }
    meet(); // before the next call writes to shared()
    return all;
  }
  index_t thread_;
};

template <class F> void for_each(cudaStream_t s, std::size_t n, F f) {
  later(s, [n, f] {
    for (std::size_t i = 0; i < n; ++i) f(static_cast<index_t>(i));
  });
}
template <class F> void for_rows(cudaStream_t s, std::size_t rows, std::size_t, F f) {
  later(s, [rows, f] {
    team([&](index_t thread) {
      for (std::size_t r = 0; r < rows; ++r) f(block(thread), static_cast<index_t>(r));
    });
  });
}

inline void count_one(unsigned long long* at) {
  ++*at;
}

#endif

} // namespace cudnn

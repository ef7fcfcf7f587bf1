// SPDX-License-Identifier: Apache-2.0
//
// The GPU that a model computes on: one stream for everything, the libraries' handles, and memory.
#pragma once

#include "../../common/cuda_devices.hpp"
#include "blas.hpp"
#include "graph.hpp"
#include "numbers.hpp"
#include "staging.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace cudnn {

// Memory of the device; what was in it is lost when it grows.
class buffer {
public:
  buffer() = default;
  ~buffer();
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  void reserve(std::size_t bytes); // holds anything
  void release() noexcept;
  template <class T = float> T* get() const { return static_cast<T*>(memory_); }
  std::size_t bytes() const { return bytes_; }

private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// What a model computes in.
struct precision {
  number type = number::f32; // of activations, and of the weights that are multiplied
  bool tf32 = false;         // products of floats may round them to 10 bits of mantissa
  bool channels_last = false;
};

class device {
public:
  // Throws rg::error, RG_E_UNSUPPORTED where there is no such device.
  device(std::int32_t index, const precision& p);
  ~device();
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  // The calling thread's calls are about this device from here on.
  void enter() const { cuda::check(cudaSetDevice(index_), "choosing the device"); }
  void check_launch() const { cuda::check(cudaGetLastError(), "launching a kernel"); }
  void settle() const { cuda::check(cudaStreamSynchronize(stream), "computing"); }
  // To the device and back, in the stream's order. Host memory that is not pinned may be changed when upload returns, and
  // is there when download does: the driver stages it.
  void upload(void* to, const void* from, std::size_t bytes) const;
  void download(void* to, const void* from, std::size_t bytes) const;
  void clear(void* at, std::size_t bytes) const;
  std::string name() const; // of the GPU, and of what runs on it

  const precision computes;
  cudaStream_t stream = nullptr;
  cudnnHandle_t dnn = nullptr;
  planner planning; // of cuDNN's graphs
  cublasHandle_t cublas = nullptr;
  cublasLtHandle_t cublas_lt() const { return reinterpret_cast<cublasLtHandle_t>(cublas); } // the one is the other, too
  staging varying;
  buffer workspace;      // cuDNN's: one for all ops, used by one at a time
  buffer blas_workspace; // cuBLAS's, likewise
  buffer scratch;        // our own, likewise

private:
  void release() noexcept;

  std::int32_t index_;
};

} // namespace cudnn

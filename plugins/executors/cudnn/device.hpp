// SPDX-License-Identifier: Apache-2.0
//
// The GPU that a model computes on: one stream for all its kernels, the libraries' handles, and memory.
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

// Device memory. Its content is lost when it grows.
class buffer {
public:
  buffer() = default;
  ~buffer();
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  void reserve(std::size_t bytes); // afterwards the content is undefined
  void release() noexcept;
  template <class T = float> T* get() const { return static_cast<T*>(memory_); }
  std::size_t bytes() const { return bytes_; }

private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// The precision that a model computes in.
struct precision {
  number type = number::f32; // of activations, and of the copies of weights that GEMMs and convolutions read
  bool tf32 = false;         // GEMMs and convolutions of fp32 may round their operands to 10 bits of mantissa
  bool channels_last = false;
};

class device {
public:
  // Throws rg::error, RG_E_UNSUPPORTED, if there is no GPU `index`, or if it lacks the precision.
  device(std::int32_t index, const precision& p);
  ~device();
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  // Makes this the current device of the calling thread.
  void enter() const { cuda::check(cudaSetDevice(index_), "choosing the device"); }
  void check_launch() const { cuda::check(cudaGetLastError(), "launching a kernel"); }
  void settle() const { cuda::check(cudaStreamSynchronize(stream), "computing"); }
  // Copies to or from the device in the order of the stream. Host memory that is not pinned may be changed when
  // upload() returns, because the driver stages it. download() waits for the stream: its data is there when it returns.
  void upload(void* to, const void* from, std::size_t bytes) const;
  void download(void* to, const void* from, std::size_t bytes) const;
  void clear(void* at, std::size_t bytes) const;
  std::string name() const; // of the GPU, cuDNN and cuBLASLt

  const precision computes;
  cudaStream_t stream = nullptr;
  cudnnHandle_t dnn = nullptr;
  planner planning; // plans of cuDNN's graphs
  cublasHandle_t cublas = nullptr;
  // A cublasHandle_t serves as a cublasLtHandle_t.
  cublasLtHandle_t cublas_lt() const { return reinterpret_cast<cublasLtHandle_t>(cublas); }
  staging varying;
  buffer workspace;      // of cuDNN; shared by all ops, which use it one at a time in the order of the stream
  buffer blas_workspace; // of cuBLAS and cuBLASLt; shared alike
  buffer scratch;        // of our own kernels; shared alike

private:
  void release() noexcept;

  std::int32_t index_;
};

} // namespace cudnn

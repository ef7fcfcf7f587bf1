// SPDX-License-Identifier: Apache-2.0
//
// The GPU that a model computes on: one stream for all its kernels, the libraries' handles, and memory. Functions that
// call CUDA or a library throw rg::error: RG_E_DEVICE, or RG_E_OPERATION if memory runs out.
#pragma once

#include "../../common/cuda_devices.hpp"
#include "kernels/dtype.hpp"
#include "lib/blas.hpp"
#include "lib/cudnn_graph.hpp"
#include "runtime/staging.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace cudnn {

// Memory of the device that is current when reserve() is called; no GPU work may use it when it is released, grows or
// is destroyed.
class buffer {
public:
  buffer() = default;
  ~buffer();
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  // Makes the buffer at least this large. If it grows, the address changes and the content is lost; it never shrinks.
  void reserve(std::size_t bytes);
  // Frees the memory: get() then returns null.
  void release() noexcept;
  // Returns the address, aligned to 256 bytes; null if nothing is reserved.
  template <class T = float> T* get() const { return static_cast<T*>(memory_); }
  std::size_t bytes() const { return bytes_; }

private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// The precision that a model computes in.
struct precision {
  dtype type = dtype::f32;    // of activations, and of the copies of weights that GEMMs and convolutions read
  bool tf32 = false;          // GEMMs and convolutions of fp32 may round their operands to 10 bits of mantissa
  bool channels_last = false; // layout of images and filters: NHWC
};

// One thread at a time. The ops' passes only enqueue work in `stream`.
class device {
public:
  // Makes GPU `index` current in the calling thread. Throws rg::error, RG_E_UNSUPPORTED, if there is no such GPU, or it
  // lacks the precision, or cuBLAS cannot be loaded.
  device(std::int32_t index, const precision& p);
  // Requires that the stream is idle.
  ~device();
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  // Makes this the current device of the calling thread.
  void enter() const { cuda::check(cudaSetDevice(index_), "choosing the device"); }
  // Throws if a kernel that this thread launched since the last check was rejected; does not wait. The error names the
  // layer and the pass. With CUDA_LAUNCH_BLOCKING=1 in the environment, CUDA waits for every kernel, and this reports
  // errors of running kernels, too.
  void check_launch(const std::string& layer, const char* pass) const {
    const cudaError_t e = cudaGetLastError();
    if (e != cudaSuccess) cuda::check(e, ("computing layer " + layer + ", " + pass + " pass").c_str());
  }
  // Waits until the stream is idle. Throws for errors of its work, too.
  void synchronize() const { cuda::check(cudaStreamSynchronize(stream), "computing"); }
  // Copy to or from the device in the order of the stream; sizes are in bytes. Host memory that is not pinned may be
  // changed when upload() returns, because the driver stages it; pinned memory only once the stream has copied it.
  // download() waits for the stream. clear() enqueues filling with zeros.
  void upload(void* to, const void* from, std::size_t bytes) const;
  void download(void* to, const void* from, std::size_t bytes) const;
  void clear(void* at, std::size_t bytes) const;
  // Returns the name of the GPU and the versions of cuDNN and cuBLASLt, for class kernel_choices.
  std::string name() const;

  const precision computes;
  cudaStream_t stream = nullptr;
  cudnnHandle_t dnn = nullptr;
  planner planning; // plans of cuDNN's graphs
  cublasHandle_t cublas = nullptr;
  // A cublasHandle_t serves as a cublasLtHandle_t.
  cublasLtHandle_t cublas_lt() const { return reinterpret_cast<cublasLtHandle_t>(cublas); }
  staging varying; // the data of a step that kernels read
  // Ops reserve `workspace` in op::prepare() and op::attach(), `scratch` in op::prepare() only. Until all have done so,
  // the addresses may change.
  buffer workspace;      // of cuDNN; shared by all ops, which use it one at a time in the order of the stream
  buffer blas_workspace; // of cuBLAS and cuBLASLt; shared alike
  buffer scratch;        // of our own kernels; shared alike

private:
  void release() noexcept;

  std::int32_t index_;
};

} // namespace cudnn

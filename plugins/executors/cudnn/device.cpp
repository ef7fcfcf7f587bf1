// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include "../../common/lazy_library.hpp"

#include <string>

namespace cudnn {

#define REGATTA_TEXT(x) #x
#define REGATTA_NAME(x) REGATTA_TEXT(x) // cublasCreate is a macro for cublasCreate_v2

const blas_functions& blas() {
  static const blas_functions functions = [] {
    const cuda::lazy_library library(REGATTA_CUBLAS);
    blas_functions f{};
    library.find(f.create, REGATTA_NAME(cublasCreate));
    library.find(f.destroy, REGATTA_NAME(cublasDestroy));
    library.find(f.set_stream, REGATTA_NAME(cublasSetStream));
    library.find(f.set_math_mode, REGATTA_NAME(cublasSetMathMode));
    library.find(f.sgemm, REGATTA_NAME(cublasSgemm));
    library.find(f.text, REGATTA_NAME(cublasGetStatusString));
    return f;
  }();
  return functions;
}

void check(cudnnStatus_t s, const char* what) {
  if (s == CUDNN_STATUS_SUCCESS) return;
  throw rg::error(RG_E_DEVICE, std::string("cuDNN, ") + what + ": " + cudnnGetErrorString(s));
}

void check(cublasStatus_t s, const char* what) {
  if (s == CUBLAS_STATUS_SUCCESS) return;
  throw rg::error(RG_E_DEVICE, std::string("cuBLAS, ") + what + ": " + blas().text(s));
}

buffer::~buffer() {
  if (memory_) cudaFree(memory_);
}

void buffer::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  if (memory_) cuda::check(cudaFree(std::exchange(memory_, nullptr)), "freeing memory");
  bytes_ = 0;
  cuda::check(cudaMalloc(&memory_, bytes), ("allocating " + std::to_string(bytes) + " bytes").c_str());
  cuda::check(cudaMemset(memory_, 0, bytes), "clearing memory");
  cuda::check(cudaDeviceSynchronize(), "clearing memory"); // streams of ours do not wait for it
  bytes_ = bytes;
}

device::device(std::int32_t index) : index_(index) {
  const std::uint32_t count = cuda::device_count();
  if (index < 0 || static_cast<std::uint32_t>(index) >= count)
    throw rg::error(RG_E_UNSUPPORTED, "there is no GPU " + std::to_string(index) + ", only " + std::to_string(count));
  enter();
  try {
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    check(cudnnCreate(&dnn), "starting");
    check(cudnnSetStream(dnn, stream), "choosing a stream");
    check(blas().create(&cublas), "starting");
    check(blas().set_stream(cublas, stream), "choosing a stream");
    check(blas().set_math_mode(cublas, CUBLAS_PEDANTIC_MATH), "choosing fp32"); // no TF32
  } catch (...) {
    release();
    throw;
  }
}

device::~device() {
  release();
}

void device::release() noexcept {
  if (cublas) blas().destroy(cublas);
  if (dnn) cudnnDestroy(dnn);
  if (stream) cudaStreamDestroy(stream);
}

void device::upload(void* to, const void* from, std::size_t bytes) const {
  cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copying to the device");
}

void device::download(void* to, const void* from, std::size_t bytes) const {
  cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "copying from the device");
  settle();
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.hpp"

#include <string>

namespace cudnn {

buffer::~buffer() {
  release();
}

void buffer::release() noexcept {
  if (memory_) cudaFree(std::exchange(memory_, nullptr));
  bytes_ = 0;
}

void buffer::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  release();
  cuda::check(cudaMalloc(&memory_, bytes), ("allocating " + std::to_string(bytes) + " bytes").c_str());
  bytes_ = bytes;
}

staging::~staging() {
  if (crossed_) cudaEventDestroy(crossed_);
  if (host_) cudaFreeHost(host_);
  if (device_) cudaFree(device_);
}

void staging::allocate() {
  if (bytes_ == 0) bytes_ = 16;
  void *host = nullptr, *on_device = nullptr;
  cuda::check(cudaMallocHost(&host, bytes_), "allocating pinned memory");
  host_ = static_cast<std::byte*>(host);
  cuda::check(cudaMalloc(&on_device, bytes_), "allocating memory");
  device_ = static_cast<std::byte*>(on_device);
  cuda::check(cudaEventCreateWithFlags(&crossed_, cudaEventDisableTiming), "making an event");
}

void staging::open() const {
  cuda::check(cudaEventSynchronize(crossed_), "waiting for a copy");
}

void staging::upload(cudaStream_t s) const {
  cuda::check(cudaMemcpyAsync(device_, host_, bytes_, cudaMemcpyHostToDevice, s), "copying to the device");
  cuda::check(cudaEventRecord(crossed_, s), "recording an event");
}

device::device(std::int32_t index, const precision& p) : computes(p), index_(index) {
  const std::uint32_t count = cuda::device_count();
  if (index < 0 || static_cast<std::uint32_t>(index) >= count)
    throw rg::error(RG_E_UNSUPPORTED, "there is no GPU " + std::to_string(index) + ", only " + std::to_string(count));
  enter();
  if (p.type == dtype::bf16 || p.tf32) {
    int major = 0;
    cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index), "asking for a capability");
    if (major < 8)
      throw rg::error(RG_E_UNSUPPORTED, "this GPU has neither bf16 nor TF32, which need compute capability 8.0; "
                                        "set train.precision to \"fp32\" or \"fp16\"");
  }
  try {
    cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    check(cudnnCreate(&dnn), "starting");
    check(cudnnSetStream(dnn, stream), "choosing a stream");
    planning.handle = dnn;
    check(blas().create(&cublas), "starting");
    check(blas().set_stream(cublas, stream), "choosing a stream");
    // By default cuBLAS would allocate its workspace in the first step, which breaks a capture. NVIDIA's manual
    // recommends this size for sm_90.
    blas_workspace.reserve(std::size_t{32} << 20);
    check(blas().set_workspace(cublas, blas_workspace.get<void>(), blas_workspace.bytes()), "giving memory");
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
  planning.known.clear();
  if (dnn) cudnnDestroy(dnn);
  if (stream) cudaStreamDestroy(stream);
}

void device::upload(void* to, const void* from, std::size_t bytes) const {
  cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copying to the device");
}

void device::download(void* to, const void* from, std::size_t bytes) const {
  cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "copying from the device");
  synchronize();
}

void device::clear(void* at, std::size_t bytes) const {
  cuda::check(cudaMemsetAsync(at, 0, bytes, stream), "clearing memory");
}

std::string device::name() const {
  cudaDeviceProp p{};
  cuda::check(cudaGetDeviceProperties(&p, index_), "describing a device");
  return std::string(p.name) + "; cuDNN " + std::to_string(cudnnGetVersion()) + "; cuBLASLt " +
         std::to_string(blas().version()) + "; ";
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// The data of a step that kernels read and that changes from step to step: seeds, loss weights, indices. Ops reserve
// space during set-up and write to pinned memory before a step; one copy uploads all of it. So no kernel argument
// changes between steps, and a step can be captured once and replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

namespace cudnn {

// One thread at a time. Set-up: reserve() for everything, then allocate(). Each step: open(), write to host(),
// upload(). Functions that call CUDA throw rg::error, RG_E_DEVICE, or RG_E_OPERATION if memory runs out.
class staging {
public:
  staging() = default;
  // Requires that no GPU work uses the memory.
  ~staging();
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  // Reserves space and returns its offset in host() and device(), a multiple of 16 bytes.
  std::size_t reserve(std::size_t bytes) {
    const std::size_t at = bytes_;
    bytes_ = (bytes_ + bytes + 15) / 16 * 16;
    return at;
  }
  // Allocates the pinned memory and the memory of the current device. Called once, after the last reserve().
  void allocate();
  // Must be called before the host writes: waits until the previous upload has ended.
  void open() const;
  // Enqueues the copy of the whole space to the device. The host must not write to it before the next open().
  void upload(cudaStream_t s) const;
  // Both are null before allocate() and constant afterwards.
  std::byte* host() const { return host_; }
  std::byte* device() const { return device_; }

private:
  std::size_t bytes_ = 0;
  std::byte *host_ = nullptr, *device_ = nullptr;
  cudaEvent_t crossed_ = nullptr;
};

// Space for several T in a staging, which must outlive this object. host() and device() require reserve(), and then
// staging::allocate().
template <class T> class staged {
public:
  void reserve(staging& s, std::size_t count) {
    at_ = s.reserve(count * sizeof(T));
    staging_ = &s;
  }
  T* host() const { return reinterpret_cast<T*>(staging_->host() + at_); }
  const T* device() const { return reinterpret_cast<const T*>(staging_->device() + at_); }
  bool there() const { return staging_ != nullptr; } // reserve() was called

private:
  staging* staging_ = nullptr;
  std::size_t at_ = 0;
};

} // namespace cudnn

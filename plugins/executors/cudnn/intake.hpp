// SPDX-License-Identifier: Apache-2.0
//
// How a batch gets to the device. Values that are made there come of a kernel; what lies in pinned memory crosses the bus
// in a stream of its own while the pass before computes, into memory between, from which it takes its place when that
// pass is over; the rest is copied in the order of the passes.
#pragma once

#include "device.hpp"

#include <vector>

#include <regatta/abi.h>

namespace cudnn {

class intake {
public:
  struct place {
    void* at;             // on the device
    std::size_t elements; // of a sample, each 4 bytes long
  };
  // One place an input, for batches of `samples`. The device is the current one, and outlives it.
  intake(const device& d, std::vector<place> places, std::size_t samples);
  ~intake();
  intake(const intake&) = delete;
  intake& operator=(const intake&) = delete;

  // What the device's stream is given from now on finds the batch in its places.
  void bring(const rg_batch& batch);

private:
  void make(const rg_batch& batch);
  void cross(const rg_batch& batch);
  template <class F> void copy(const rg_batch& batch, cudaStream_t s, F to_and_from) const;
  std::size_t bytes(const place& p) const { return samples_ * p.elements * 4; }
  void release() noexcept;

  const device& device_;
  std::vector<place> places_;
  std::size_t samples_;
  buffer between_, table_; // the latter: what values are looked up in
  cudaStream_t stream_ = nullptr;
  cudaEvent_t crossed_ = nullptr, taken_ = nullptr;
};

} // namespace cudnn

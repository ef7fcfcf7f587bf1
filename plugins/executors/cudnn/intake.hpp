// SPDX-License-Identifier: Apache-2.0
//
// Brings a batch to the device. Generated input is computed there by a kernel. Pinned memory is copied on a copy stream
// to a staging buffer, while the compute stream runs the previous pass; the compute stream then copies it to the
// inputs. Other memory is copied in the order of the compute stream.
#pragma once

#include "device.hpp"

#include <vector>

#include <regatta/abi.h>

namespace cudnn {

class intake {
public:
  struct place {
    void* at;             // on the device
    std::size_t elements; // per sample, 4 bytes each
  };
  // `places`: one per input, for batches of `samples`. Uses the current device; `d` must outlive this object.
  intake(const device& d, std::vector<place> places, std::size_t samples);
  ~intake();
  intake(const intake&) = delete;
  intake& operator=(const intake&) = delete;

  // Enqueues the copies of a batch. Later work of the device's stream sees the batch in the inputs.
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
  buffer between_, table_; // table_: lookup table of generated values
  cudaStream_t stream_ = nullptr;
  // crossed_: the staging buffer is filled. taken_: it may be overwritten.
  cudaEvent_t crossed_ = nullptr, taken_ = nullptr;
};

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// Brings the inputs of a batch to the device. Generated input is computed there by a kernel. A batch with RG_BATCH_HELD
// is copied on a copy stream to a staging buffer, while the compute stream runs the previous pass; the compute stream
// then copies it to the inputs. Other batches are copied by the compute stream, behind the previous pass.
#pragma once

#include "runtime/device.hpp"

#include <vector>

#include <regatta/abi.h>

namespace cudnn {

class intake {
public:
  struct place {
    void* at;             // on the device
    std::size_t elements; // per sample, 4 bytes each
  };
  // `places`: one per input, in the order of rg_batch::inputs. Every batch must have room for `samples` samples, and
  // all of them are copied. Creates a stream on the current device, which must be `d`; `d` must outlive this object.
  intake(const device& d, std::vector<place> places, std::size_t samples);
  ~intake();
  intake(const intake&) = delete;
  intake& operator=(const intake&) = delete;

  // Enqueues the copies of a batch; an input that is null and not generated keeps its content. Later work of the
  // device's stream sees the batch in `places`. Without RG_BATCH_HELD the batch must not be pinned, and may change when
  // this returns. Requires the device to be current. Throws rg::error: RG_E_DEVICE, or RG_E_OPERATION if memory runs
  // out.
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
  buffer between_, table_; // the staging buffer; the lookup table of generated values
  cudaStream_t stream_ = nullptr;
  // crossed_: the staging buffer is filled. taken_: it may be overwritten.
  cudaEvent_t crossed_ = nullptr, taken_ = nullptr;
};

} // namespace cudnn

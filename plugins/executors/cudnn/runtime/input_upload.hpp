// SPDX-License-Identifier: Apache-2.0
//
// Copies the inputs of a batch to the device. A batch with RG_BATCH_HELD is copied on a copy stream to a staging
// buffer, while the compute stream runs the previous pass; the compute stream then copies it to the inputs. Other
// batches are copied by the compute stream, behind the previous pass.
#pragma once

#include "runtime/device.hpp"

#include <vector>

#include <regatta/abi.h>

namespace cudnn {

class input_upload {
public:
  struct input {
    void* at;             // on the device
    std::size_t elements; // per sample, 4 bytes each
  };
  // `inputs`: one per input, in the order of rg_batch::inputs. Every batch must have room for `samples` samples, and
  // all of them are copied. Creates a stream on the current device, which must be `d`; `d` must outlive this object.
  input_upload(const device& d, std::vector<input> inputs, std::size_t samples);
  // Requires that the device's stream is idle.
  ~input_upload();
  input_upload(const input_upload&) = delete;
  input_upload& operator=(const input_upload&) = delete;

  // Enqueues the copies of a batch; where its pointer is null, an input keeps its content. Later work of the device's
  // stream sees the batch in `inputs`. With RG_BATCH_HELD the batch must be pinned, and must not change until a fence
  // that is recorded in the device's stream after this call has passed. Without it the batch must not be pinned, and
  // may change when this returns. Requires the device to be current. Throws rg::error: RG_E_DEVICE, or RG_E_OPERATION
  // if memory runs out.
  void upload(const rg_batch& batch);

private:
  void upload_by_copy_stream(const rg_batch& batch);
  template <class F> void copy(const rg_batch& batch, cudaStream_t s, F to_and_from) const;
  std::size_t bytes(const input& p) const { return samples_ * p.elements * 4; }
  void release() noexcept;

  const device& device_;
  std::vector<input> inputs_;
  std::size_t samples_;
  buffer staging_;
  cudaStream_t stream_ = nullptr;
  // staged_: the staging buffer is filled. consumed_: it may be overwritten.
  cudaEvent_t staged_ = nullptr, consumed_ = nullptr;
};

} // namespace cudnn

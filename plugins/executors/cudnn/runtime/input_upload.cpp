// SPDX-License-Identifier: Apache-2.0
#include "runtime/input_upload.hpp"

#include "runtime/memory_plan.hpp"

#include <regatta/ext/device.h>
#include <utility>

namespace cudnn {

input_upload::input_upload(const device& d, std::vector<input> inputs, std::size_t samples)
    : device_(d), inputs_(std::move(inputs)), samples_(samples) {
  try {
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    for (cudaEvent_t* e : {&staged_, &consumed_})
      cuda::check(cudaEventCreateWithFlags(e, cudaEventDisableTiming), "making an event");
  } catch (...) {
    release();
    throw;
  }
}

input_upload::~input_upload() {
  release();
}

void input_upload::release() noexcept {
  for (cudaEvent_t e : {staged_, consumed_})
    if (e) cudaEventDestroy(e);
  if (stream_) cudaStreamDestroy(stream_);
}

void input_upload::upload(const rg_batch& batch) {
  if (batch.flags & RG_BATCH_HELD) return upload_by_copy_stream(batch);
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (batch.inputs[i]) device_.upload(inputs_[i].at, batch.inputs[i], bytes(inputs_[i]));
}

void input_upload::upload_by_copy_stream(const rg_batch& batch) {
  std::size_t all = 0;
  for (const input& p : inputs_) all += aligned(bytes(p));
  staging_.reserve(all); // allocates in the first pass only

  // An event that was never recorded counts as passed.
  cuda::check(cudaStreamWaitEvent(stream_, consumed_, 0), "waiting for an event");
  copy(batch, stream_, [&](std::size_t i, void* between) {
    return std::pair<void*, const void*>{between, batch.inputs[i]};
  });
  cuda::check(cudaEventRecord(staged_, stream_), "recording an event");
  cuda::check(cudaStreamWaitEvent(device_.stream, staged_, 0), "waiting for an event");
  copy(batch, device_.stream, [&](std::size_t i, void* between) {
    return std::pair<void*, const void*>{inputs_[i].at, between};
  });
  cuda::check(cudaEventRecord(consumed_, device_.stream), "recording an event");
}

template <class F> void input_upload::copy(const rg_batch& batch, cudaStream_t s, F to_and_from) const {
  std::byte* between = staging_.get<std::byte>();
  for (std::size_t i = 0; i < inputs_.size(); between += aligned(bytes(inputs_[i++]))) {
    if (!batch.inputs[i]) continue;
    const auto [to, from] = to_and_from(i, between);
    cuda::check(cudaMemcpyAsync(to, from, bytes(inputs_[i]), cudaMemcpyDefault, s), "copying a batch");
  }
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
#include "runtime/input_upload.hpp"

#include "kernels/elementwise.hpp"
#include "runtime/memory_plan.hpp"

#include <utility>

namespace cudnn {

intake::intake(const device& d, std::vector<place> places, std::size_t samples)
    : device_(d), places_(std::move(places)), samples_(samples) {
  try {
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    for (cudaEvent_t* e : {&crossed_, &taken_})
      cuda::check(cudaEventCreateWithFlags(e, cudaEventDisableTiming), "making an event");
  } catch (...) {
    release();
    throw;
  }
}

intake::~intake() {
  release();
}

void intake::release() noexcept {
  for (cudaEvent_t e : {crossed_, taken_})
    if (e) cudaEventDestroy(e);
  if (stream_) cudaStreamDestroy(stream_);
}

void intake::bring(const rg_batch& batch) {
  if (batch.made) make(batch);
  if (batch.flags & RG_BATCH_HELD) return cross(batch);
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (batch.inputs[i]) device_.upload(places_[i].at, batch.inputs[i], bytes(places_[i]));
}

void intake::make(const rg_batch& batch) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto made = rg::copy_versioned(rg::at_stride(batch.made, static_cast<std::uint32_t>(i)));
    if (!made.kind) continue;
    if (made.kind == RG_MADE_LOOKED_UP && !table_.bytes()) {
      table_.reserve(65536 * sizeof(float));
      device_.upload(table_.get(), made.table, table_.bytes());
    }
    const kernels::making how{.kind = made.kind,
                              .seed = made.seed,
                              .first = batch.first_sample,
                              .table = table_.get(),
                              .elements = static_cast<std::uint32_t>(places_[i].elements)};
    kernels::make_values(device_.stream, how, static_cast<float*>(places_[i].at), samples_);
  }
}

void intake::cross(const rg_batch& batch) {
  std::size_t all = 0;
  for (const place& p : places_) all += aligned(bytes(p));
  between_.reserve(all); // allocates in the first pass only

  // An event that was never recorded counts as passed.
  cuda::check(cudaStreamWaitEvent(stream_, taken_, 0), "waiting for an event");
  copy(batch, stream_, [&](std::size_t i, void* between) {
    return std::pair<void*, const void*>{between, batch.inputs[i]};
  });
  cuda::check(cudaEventRecord(crossed_, stream_), "recording an event");
  cuda::check(cudaStreamWaitEvent(device_.stream, crossed_, 0), "waiting for an event");
  copy(batch, device_.stream, [&](std::size_t i, void* between) {
    return std::pair<void*, const void*>{places_[i].at, between};
  });
  cuda::check(cudaEventRecord(taken_, device_.stream), "recording an event");
}

template <class F> void intake::copy(const rg_batch& batch, cudaStream_t s, F to_and_from) const {
  std::byte* between = between_.get<std::byte>();
  for (std::size_t i = 0; i < places_.size(); between += aligned(bytes(places_[i++]))) {
    if (!batch.inputs[i]) continue; // generated on the device
    const auto [to, from] = to_and_from(i, between);
    cuda::check(cudaMemcpyAsync(to, from, bytes(places_[i]), cudaMemcpyDefault, s), "copying a batch");
  }
}

} // namespace cudnn

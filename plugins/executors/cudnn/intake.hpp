// SPDX-License-Identifier: Apache-2.0
//
// The way of a batch to the device, in a stream of its own: it crosses the bus while the pass before computes, into memory
// between, from which it takes its place when that pass is over.
#pragma once

#include "device.hpp"

#include <utility>
#include <vector>

namespace cudnn {

class intake {
public:
  struct place {
    void* at; // on the device
    std::size_t bytes;
  };
  // Of the current device, which outlives it.
  explicit intake(std::vector<place> places) : places_(std::move(places)) {
    std::size_t all = 0;
    for (const place& p : places_) all += apart(p.bytes);
    between_.reserve(all);
    try {
      cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
      for (cudaEvent_t* e : {&crossed_, &taken_})
        cuda::check(cudaEventCreateWithFlags(e, cudaEventDisableTiming), "making an event");
    } catch (...) {
      release();
      throw;
    }
  }
  ~intake() { release(); }
  intake(const intake&) = delete;
  intake& operator=(const intake&) = delete;

  // What `s` is given from now on finds the batch in its places. `from`: pinned memory, one an input, which stays as it is
  // until `s` has got there.
  void bring(cudaStream_t s, const void* const* from) {
    cuda::check(cudaStreamWaitEvent(stream_, taken_, 0),
                "waiting for an event"); // at first there is nothing to wait for
    copy(stream_, [&](std::size_t i, std::byte* between) { return std::pair<void*, const void*>{between, from[i]}; });
    cuda::check(cudaEventRecord(crossed_, stream_), "recording an event");
    cuda::check(cudaStreamWaitEvent(s, crossed_, 0), "waiting for an event");
    copy(s, [&](std::size_t i, std::byte* between) { return std::pair<void*, const void*>{places_[i].at, between}; });
    cuda::check(cudaEventRecord(taken_, s), "recording an event");
  }

private:
  static std::size_t apart(std::size_t bytes) { return (bytes + 255) / 256 * 256; }
  template <class F> void copy(cudaStream_t s, F to_and_from) const {
    std::byte* between = between_.get<std::byte>();
    for (std::size_t i = 0; i < places_.size(); between += apart(places_[i++].bytes)) {
      const auto [to, from] = to_and_from(i, between);
      cuda::check(cudaMemcpyAsync(to, from, places_[i].bytes, cudaMemcpyDefault, s), "copying a batch");
    }
  }
  void release() noexcept {
    for (cudaEvent_t e : {crossed_, taken_})
      if (e) cudaEventDestroy(e);
    if (stream_) cudaStreamDestroy(stream_);
  }

  std::vector<place> places_;
  buffer between_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t crossed_ = nullptr, taken_ = nullptr;
};

} // namespace cudnn
